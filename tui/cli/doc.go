// Package cli is the commands: one-shot programs that speak to a controller over the wire.
//
// There is one file per noun. Voice and exit codes stand in print.go, tables in
// table.go, finding the controller in connect.go. The package reads no
// environment, starts nothing and ends no process: main hands in an Env and
// turns the code that Run returns into the process's.
package cli
