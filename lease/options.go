package lease

// An Option is for [NewKeeper]. If two are of a kind the last one counts.
type Option interface{ applyKeeper(*settings) }

// A LeaseOption is for [Keeper.Keep]. If two are of a kind the last one counts.
type LeaseOption interface{ applyLease(*leaseSettings) }

type settings struct {
	clock    *Clock
	most     int // leases in a call; 0: no limit
	name     string
	unscoped bool
}

type leaseSettings struct {
	cause func(err error) error
	lost  func(err error)
	fixed bool
}

type option func(*settings)

func (o option) applyKeeper(s *settings) { o(s) }

type leaseOption func(*leaseSettings)

func (o leaseOption) applyLease(s *leaseSettings) { o(s) }

// WithClock has a keeper read that clock; without it a keeper has one of its own.
//
//	lease.NewKeeper(ctx, renew, lease.WithClock(clock))
//
// # Details
//
// Keepers and other parts of a program that compare times need the same clock, and tests
// need a clock that they can have jump. A nil clock panics.
func WithClock(c *Clock) Option {
	if c == nil {
		panic("lease: WithClock with a nil clock: pass what NewClock returns")
	}
	return option(func(s *settings) { s.clock = c })
}

// Most bounds how many leases one call of the renew function is given.
//
//	lease.NewKeeper(ctx, renew, lease.Most(100))
//
// # Details
//
// Without Most there is no bound. n < 1 panics.
func Most(n int) Option {
	if n < 1 {
		panic("lease: Most(n): n must be at least 1; leave the option out for no limit")
	}
	return option(func(s *settings) { s.most = n })
}

// Name names the tasks of a keeper in dumps.
//
//	lease.NewKeeper(ctx, renew, lease.Name("leader"))
//
// # Details
//
// Defaults to "lease".
func Name(name string) Option { return option(func(s *settings) { s.name = name }) }

// Unscoped has a keeper belong to no scope.
//
//	k := lease.NewKeeper(ctx, renew, lease.Unscoped())
//
// # Details
//
// It ends never, and renews what it keeps until that is released, over or lost, whatever is cancelled
// or shut down. The ctx of [NewKeeper] does not matter. It is for a part of a program that releases
// each of its leases itself. A failure in the tasks of the keeper is told to the root of package async.
func Unscoped() Option { return option(func(s *settings) { s.unscoped = true }) }

// CauseOf has f make the cause of a lease whose belief ends: an error type of the caller's
// own, say, that wraps the [*Error] that f is given.
//
//	k.Keep("report", t, lease.CauseOf(func(err error) error { return fmt.Errorf("no longer leader: %w", err) }))
//
// # Details
//
// f is called with no lock held, on the goroutine that has noticed the end, must not block,
// and may be called twice by two goroutines at once, of which one answer counts. If f
// returns nil or panics the cause is the error itself, with the panic in its text. A nil f
// panics.
func CauseOf(f func(err error) error) LeaseOption {
	if f == nil {
		panic("lease: CauseOf with a nil function: pass one that returns the cause")
	}
	return leaseOption(func(s *leaseSettings) { s.cause = f })
}

// OnLoss has f called once when the lease is over or lost, with the cause, in a task of the
// keeper.
//
//	k.Keep("report", t, lease.OnLoss(func(err error) { log.Print("lost: ", err) }))
//
// # Details
//
// f is not called when the owner has ended the lease. The contexts of the lease are done by
// then. A panic of f is an error of the scope of the keeper. A nil f panics.
func OnLoss(f func(err error)) LeaseOption {
	if f == nil {
		panic("lease: OnLoss with a nil function: pass what is to be called")
	}
	return leaseOption(func(s *leaseSettings) { s.lost = f })
}

// Fixed has a lease never renewed, but by [Lease.Extend]: it is over at the end of its
// term.
//
//	k.Keep("report", t, lease.Fixed())
func Fixed() LeaseOption { return leaseOption(func(s *leaseSettings) { s.fixed = true }) }
