package mission

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed examples
var embedded embed.FS

// Examples is the bundled example folder: units, missions, data, and the demo's
// configuration.
func Examples() fs.FS {
	sub, err := fs.Sub(embedded, "examples")
	if err != nil {
		panic(fmt.Sprintf("mission: the embedded examples are not there: %v", err))
	}
	return sub
}
