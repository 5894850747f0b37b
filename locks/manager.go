package locks

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/lease"
)

// A Manager takes locks of one tenant in one store, keeps their leases alive, and waits
// for those that are not free. A process needs one for each store. It is made by [New].
// Any number of goroutines may use one.
//
// It has no goroutine of its own while no lock is waited for and none is due to be
// renewed. The renewals are those of a [lease.Keeper]; one task for each key waits
// for all of its callers. These tasks stand at the root of package async: they are in its
// dumps, and [async.Shutdown] waits for them.
type Manager struct {
	store   Store
	traits  Traits
	set     settings
	clock   *lease.Clock
	keeper  *lease.Keeper[*Hold]
	resumed resumption

	mu        sync.Mutex
	closed    bool
	waitlists map[Name]*waitlist
	// alone are keys for which a call is asking by itself, before there is a waitlist. Those
	// that come meanwhile wait in one: a thousand would keep each other, and a release, from
	// the connections of the store.
	alone map[Name]struct{}
	// smaller are semaphores that have fewer permits than a call has named, with their sizes:
	// what the observers were told. They are at most mostSmaller.
	smaller map[Name]int
	// listeners hear of locks that somebody here waited for a moment ago.
	listeners map[Name]*listener
}

// New returns a manager of the locks in store. It asks the store for nothing. The store
// stays its caller's, who closes it when no manager uses it any more. An option that
// makes no sense is an error that matches [ErrValidation].
func New(store Store, options ...Option) (*Manager, error) {
	if store == nil {
		return nil, &ValidationError{"store", "it is nil: make one with the package of a store, or with Open"}
	}
	if v := reflect.ValueOf(store); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &ValidationError{"store", fmt.Sprintf("it is a nil %T: look at the error of what has made it", store)}
	}
	if !reflect.ValueOf(store).Comparable() {
		return nil, &ValidationError{"store", "two of its type cannot be compared, which tells whose a lock is: pass a pointer to it"}
	}
	m := &Manager{
		store: store, traits: store.Traits(), clock: lease.NewClock(),
		waitlists: map[Name]*waitlist{}, alone: map[Name]struct{}{}, listeners: map[Name]*listener{}, smaller: map[Name]int{},
	}
	m.set = settings{tenant: "default", lease: max(15*time.Second, m.traits.MinLease), owner: defaultOwner(), retain: 24 * time.Hour}
	for _, o := range options {
		if o == nil {
			return nil, &ValidationError{"option", "it is nil: leave it out"}
		}
		if err := o.applyManager(&m.set); err != nil {
			return nil, err
		}
	}
	if err := checkLease(m.set.lease, m.traits); err != nil {
		return nil, err
	}
	m.keeper = lease.NewKeeper(context.Background(), m.renew,
		lease.Unscoped(), lease.WithClock(m.clock), lease.Name("locks"))
	return m, nil
}

// Close has every later call for a lock fail with [ErrClosed], also those that wait for
// one now. A lock that is held stays held, and is renewed, until it is given back. Close does not
// wait for that, and may be called any number of times. The store stays open.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	for _, g := range m.waitlists {
		g.failLocked(ErrClosed)
	}
	listeners := slices.Collect(maps.Values(m.listeners))
	clear(m.listeners)
	m.mu.Unlock()
	for _, e := range listeners {
		e.timer.Stop() // too late, it does nothing
		e.stop()
	}
	return nil
}

func (m *Manager) name(key string) Name { return Name{Tenant: m.set.tenant, Key: key} }

// bounded returns a context with the values of ctx, that lasts d whatever becomes of ctx.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
