// Package hush keeps the terminal library from asking the terminal for its
// colours when the program starts.
//
// That library asks in its own init, and a terminal that does not answer holds
// up every command for seconds, --help as well. With CI set it asks nothing.
// Packages are initialised in the order of their import paths once what they
// import is ready, so this one, which imports os alone, comes before it; tui,
// which imports it, comes after, and takes the variable away again.
package hush

import "os"

const name = "CI"

// ours is whether the variable was not there before.
var ours bool

func init() {
	if _, set := os.LookupEnv(name); set {
		return
	}
	ours = os.Setenv(name, "1") == nil
}

// Over takes the variable away again, if it was this package that set it.
func Over() {
	if ours {
		os.Unsetenv(name)
		ours = false
	}
}
