//go:build !unix

package top

import "os"

// watched has no signal here: a window that has changed its size is found out when the
// next picture is drawn.
var watched = []os.Signal{nobody{}}

// nobody is a signal that does not come: with no signal at all Notify means all.
type nobody struct{}

func (nobody) Signal()        {}
func (nobody) String() string { return "nobody" }

func kindOf(os.Signal) signalKind { return resized }
func stopSelf()                   {}
func die(os.Signal)               {}
