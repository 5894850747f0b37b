package tree

import "time"

// Seldom is what few scopes have. It stands apart so that a task which asks for Done stays
// small: that makes a scope. It is guarded by the Mu of the scope.
type Seldom struct {
	Alarm  *time.Timer   // prints the panic that is to be raised, if that takes long
	Timers []*time.Timer // of OnStall, DetachAfter and Heartbeat
	// changed is closed, and nil again, when a child leaves. Only Shutdown waits for it.
	changed chan struct{}
	// leftAtRoot ends the scope, which has returned without its tasks: the last of these to
	// leave, daemons and groups left out, takes it, and calls it.
	leftAtRoot  func()
	returnedErr error // what Scope has returned, if it did so without its tasks
}
