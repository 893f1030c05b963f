//go:build !linux

package unit

func children() map[int]bool { return nil }
