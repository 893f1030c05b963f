// Command apollo11 is mission control for work that must not go wrong.
package main

import (
	_ "embed"
	"os"
	"time"

	"apollo11/tui/start"
)

//go:embed config.toml
var defaults []byte

func main() { os.Exit(run()) }

// run is main with an exit code, so that scripts can run it as a command.
func run() int {
	return start.Run(start.World{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Defaults: defaults, Now: time.Now,
	})
}
