// Package locks has mutexes, semaphores and read-write locks that processes on many
// machines share, over the databases that people already run. A held lock is a scope of
// package async: the context of what runs under it dies, with a cause, before anybody
// else can be granted the lock, and the lock is given back only when everything that
// was started under it has ended.
//
//	store, err := locks.Open(ctx, "sqlite:locks.db") // import _ ".../locks/sqlitestore"
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	m, err := locks.New(store, locks.Tenant("acme"), locks.Lease(15*time.Second))
//	if err != nil {
//		return err
//	}
//	err = m.With(ctx, "invoice/42", func(ctx context.Context) error {
//		return pay(ctx, locks.From(ctx).Token()) // ctx dies before anybody else has the lock
//	})
//
// # Choosing
//
//   - [Manager.With] for a piece of work under a lock, [Manager.TryWith] if it is not to wait.
//   - [Manager.WithPermit] and [Manager.WithPermits] for a semaphore, [Manager.WithRead] and
//     [Manager.WithWrite] for a read-write lock, [Manager.WithAll] for several mutexes.
//   - [Manager.Lead] for work that one process of many does at a time, for as long as it lives.
//   - [Manager.Acquire] for a lock that outlives a function; [Hold.Run] runs a body under it.
//   - [Manager.Get], [Manager.List], [Manager.Revoke] and the rest of the commands for those who
//     look after locks; the program db-locks has them, too.
//
// # What a lock over a network can promise
//
// A lease is renewed while its lock is held. A holder that the store does not hear of loses
// it: when the network is silent, the process is stopped, or its machine sleeps. The holder
// knows first: it counts its lease from before it asked for it, and stops to believe in it
// a margin before its end in the store. Then the context of the body is cancelled, without
// waiting for any call to return. A body may ignore its context in the meantime, and nobody
// can call back a write that is on its way, or wake a process that was stopped between its look at
// the clock and its write. A resource that must be safe from those checks the token: see package
// fence.
//
// # Cancellation and causes
//
// The ctx of a body is cancelled with the cause of the ctx that the call was given, or with
// the [*LostError]. When the ctx of the call ends, the lease is renewed until body has
// returned, for what it has to clean up. A call that returns an error has withdrawn its
// request, unless the error matches [ErrUnknownOutcome]; then it ends with its lease.
//
// # Errors
//
// Four things are told apart: somebody else has the lock ([ErrNotGranted]), it was lost
// ([*LostError]), the store does not answer ([ErrUnavailable]), and it is not known what
// happened ([ErrUnknownOutcome]). With returns a LostError although its body returned nil.
//
// # Order
//
// Requests wait in the store, and are granted in the order in which it has heard of them,
// over all processes. [Fair](false) passes others. A process asks once a second for all of
// its callers that wait for a key; that a lock was released, the store tells at once, if it
// can. A request of a process that has died is forgotten after 3 s, on etcd and DynamoDB up to 3 s later,
// and those behind it see that when they ask the next time.
//
// The code under a lock happens before what happens under the next grant of it, if both
// are in one process; between processes it is the resource that orders.
//
// # Panics
//
// A panic of a body, and runtime.Goexit, goes on when all that the body started has ended
// and the lock was given back. A nil body panics.
//
// # Testing
//
// The store of package memstore works in a testing/synctest bubble: leases end in no time.
// Package lockstest tests stores, and has one that misbehaves as it is told.
//
// The model is db-locks (Shahzad Bhatti, 2022): its words and its command line are kept. Leases
// are due to Gray and Cheriton (1989), LockDelay and the word sequencer to Chubby (Burrows,
// 2006).
package locks
