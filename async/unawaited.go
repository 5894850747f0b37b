package async

// An UnawaitedError is what a scope tells of the failure of a future that nobody was
// given by the end of the scope, because nobody awaited it: of which task it is. A
// task that was started with [Go] needs no Await, and its failure is told as it is;
// so is a panic, which is a [*PanicError]. Who awaits the future after that is given
// Err.
//
// [errors.Is] and [errors.As] reach Err. An error that several tasks have returned is
// listed once, so only the first of them is named.
type UnawaitedError struct {
	Task string // the name of the task
	Err  error  // its failure
}

// Error names the task and says that nobody awaited it, and then the failure.
func (e *UnawaitedError) Error() string {
	if e == nil {
		return nilText(e)
	}
	return prefix(e.Task) + "nobody awaited it: " + within(e.Task, e.Err)
}

// Unwrap returns the failure.
func (e *UnawaitedError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}
