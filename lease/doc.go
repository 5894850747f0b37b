// Package lease keeps what was granted for a time: the leadership of a group of processes, a
// lock, a claimed task, a session. A [Keeper] renews many such leases in one call, and the
// context of a [Lease] is done, with a cause, before the store can grant the thing to
// somebody else. The package knows no store, no queue and no lock.
//
//	k := lease.NewKeeper(ctx, func(ctx context.Context, batch []lease.Renewal[string]) ([]error, error) {
//		return store.Renew(ctx, batch) // one call for all; lease.ErrLost for those that others have
//	})
//	sent := k.Now() // before the request
//	if err := store.Acquire(ctx, "leader", 15*time.Second); err != nil {
//		return err
//	}
//	l, err := k.Keep("leader", lease.Term{Granted: sent, Length: 15 * time.Second})
//	if err != nil {
//		return err // the grant took too long: give it back, and ask again
//	}
//	err = l.Run(ctx, lead)                                  // a scope, whose ctx is done before the lease is over
//	return errors.Join(err, l.Release(ctx), store.GiveBack(ctx, "leader")) // in this order
//
// The example of the package is a whole leader election.
//
// # Choosing
//
//   - [Lease.Run] for work under a lease: a scope, so nothing of the work outlives Run, and a
//     lease that ended before the work is an error although the body returned nil.
//   - [Lease.Context] for work that is not one function: handlers below a session, several
//     scopes, several leases at once, one context made from the other.
//   - [Lease.Err] before each write to something else; [Check] where only a ctx is at hand.
//   - [Lease.Extend] before a step that must not be cut short, for a renewal at once.
//   - [Term] alone for a program that has a loop of its own and wants the formula.
//
// # What a holder may believe
//
// A request is sent, the store grants for 15 s from the moment at which it decides, and the
// answer comes back. The holder does not know that moment; it knows that it was not before
// the request. So the term starts at sending, on the holder's clock, and is believed until a
// margin before its end ([Margin], [Term.Believed]). No clocks of two machines are compared,
// which is why the store needs no more than a clock that runs at about the right speed.
//
// Every length leads to the same plan, see [Term.Renewal]: renew at 0.30 of the length, wait
// for an answer for at most a sixth, try again each twelfth, give up at the end of the
// belief without waiting for any call to return. A request that succeeds starts a new term
// at its own sending. A request of which nobody knows the outcome changes nothing.
//
// # Two ends
//
// Belief and hold end separately. The belief is what contexts follow. It ends when the term
// is over, when the store says that the lease is lost, or by [Lease.End]. The hold ends by
// [Lease.Release]; until then the keeper renews, also a lease that its owner has ended, also
// under a cancelled ctx: a worker that has finished needs its claim until the store knows the
// result. A lease that is over or lost is given up, and is renewed never again.
//
// A parent that is cancelled ends a context and nothing else. The work may take its time to
// clean up, and holds the lease until it has.
//
// # Causes
//
// The cause of a context is an [*Error] that matches one of three:
//
//   - [ErrOver]: no renewal had success in time. The store cannot be reached, or the process
//     or its machine stood still; Tries and Err of the error tell these apart.
//   - [ErrLost]: the store has said that somebody else has the thing, or that it was revoked.
//   - [ErrEnded]: the owner has ended it, or the scope of the keeper has ended.
//
// Or it is the cause of the parent. [CauseOf] puts an error of the caller's own in its place.
//
// # Clocks
//
// A term goes on while the machine of its holder sleeps, and the timers of Go do not. So a
// [Clock] counts suspends, a context reads that clock whenever it is asked, and the keeper
// reads it each second, for those who only wait. After a suspend, or a SIGSTOP, the first
// question to the context has the right answer, although no timer has run yet. The clock
// never believes the time of day, which may jump.
//
// On Linux the clock is CLOCK_BOOTTIME; on Windows the clock of package time counts suspends.
// Elsewhere nobody tells a suspend to a program that has only the standard library: on macOS
// a process that was stopped is told as above, and one whose machine slept believes for as
// long as it had left before, while the machine was asleep. Fence there.
//
// # What no lease can promise
//
// A holder may be stopped after it has looked and before it writes. Nothing on its side can
// prevent that write. Where it would do harm, the resource has to refuse it: let the store
// count its grants, send the number with each write, and have the resource refuse a number
// that is less than the greatest it has seen (a fencing token).
//
// # Order
//
// Contexts are done before [Lease.Err] returns a cause to whoever ended the belief, and
// before the function of [OnLoss] is called. When [Lease.Release] has
// returned nil, no renewal of the lease is on its way, and all that the calls of the renew
// function did for the lease happened before.
//
// # Panics
//
// A panic of a body goes on in Run, as in [async.Scope]. A panic of the renew function is a
// renewal that has failed, and an error of the keeper's scope, or told to the root if the keeper
// is [Unscoped]; [Lease.Extend] raises it.
//
// # Testing
//
// The package works in a testing/synctest bubble: hours of renewals take no time. Give the
// keeper a clock ([WithClock]) and let [Clock.Suspend] pretend that the machine slept. A real
// stop is SIGSTOP and SIGCONT to a child process; stop it for longer than the term, and ask
// its context first.
//
// Leases are due to Gray and Cheriton (Leases: an efficient fault-tolerant mechanism for
// distributed file cache consistency, 1989), who have the margin for clocks as well; the
// holder's view that is shorter than the server's to Burrows (The Chubby lock service, 2006).
package lease
