// Package mission is the graph of tasks that a file describes.
//
// It is pure: no goroutine, no clock, no I/O. For now it holds the bundled
// examples; the graph itself comes with missions.
package mission
