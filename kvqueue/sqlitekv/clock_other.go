//go:build !linux

package sqlitekv

func bootClock() (boot string, now clock) { return "", wallClock }
