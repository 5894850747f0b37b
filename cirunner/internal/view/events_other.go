//go:build !unix

package view

import "os"

// An event is what the terminal asks for. Here it asks for nothing.
type event int

const (
	nothing event = iota
	resized
	suspended
	resumed
)

type events struct{}

func (*events) begin() (stop func()) { return func() {} }
func (*events) next() event          { return nothing }

func stopSelf(*events)           {}
func inForeground(*os.File) bool { return true }
