//go:build !unix

package main

import "time"

var begin = time.Now()

// cpu returns the time since the program began, where processor time is unknown.
func cpu() time.Duration { return time.Since(begin) }
