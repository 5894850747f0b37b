//go:build !unix

package service

// ownPipes does nothing: there is no SIGPIPE.
func ownPipes() {}
