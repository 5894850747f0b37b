//go:build !unix

package lockstest

// pause does nothing where a process cannot be stopped.
func (r *rowRun) pause(*process) { r.wait(2) }
