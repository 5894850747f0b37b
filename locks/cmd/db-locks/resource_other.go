//go:build !unix

package main

import (
	"errors"
	"os"
)

var errNoSignals = errors.New("the demonstration stops and resumes processes, which this system cannot do")

func writeCounter(string, int64, int, func()) error { return errNoSignals }
func pauseProcess(*os.Process) error                { return errNoSignals }
func resumeProcess(*os.Process) error               { return errNoSignals }
