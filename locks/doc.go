// Package locks has mutexes, semaphores and read-write locks that processes on many
// machines share, over the databases that people already run. A held lock is a scope of
// package async: the context of what runs under it dies, with a cause, before anybody
// else can be granted the lock, and the lock is given back only when everything that
// was started under it has ended.
//
// The model is db-locks (Shahzad Bhatti, 2022): its words and its command line are
// kept.
package locks
