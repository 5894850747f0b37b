// Package etcdstore is a locks.Store on etcd, 3.6 or newer.
//
//	client, err := clientv3.New(clientv3.Config{
//		Endpoints:            endpoints,
//		DialKeepAliveTime:    10 * time.Second,
//		DialKeepAliveTimeout: 3 * time.Second,
//	})
//	...
//	store, err := etcdstore.New(ctx, client)
//	m, err := locks.New(store)
//
// A lock is a record and a key for each request that waits or holds the lock. Every step reads
// them at one revision, decides, and writes what changes in one transaction, on the condition
// that nobody else has written the record. The keys of requests are on leases of etcd: one lease
// a process and length, however many locks it holds, and one for all of its requests that wait. A
// lock is held as long as its key is there.
//
// The token of a grant is the revision of the transaction that grants it, so tokens go on over
// whatever is deleted. They do not after a restore of an older snapshot, unless etcd is restored
// with a greater revision (etcdutl snapshot restore --bump-revision N --mark-compacted).
//
// Leases are 2 s or more, and end up to two seconds late: etcd counts them in seconds. A
// [locks.LockDelay] is counted from when somebody finds that the lease has ended. Times that
// records show are those of the processes that wrote them; nothing is decided by them.
//
// # Needs of etcd
//
// etcd keeps what was overwritten until it is compacted: set --auto-compaction-retention. A
// grant and its release write about one and a quarter kilobytes.
//
// A user of etcd needs the permission to read and write the keys under the prefix "locks/", or
// that of [Prefix]. Those of one tenant alone are under "locks/4:acme/": the length of its name,
// and its name.
package etcdstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/hint"
	"github.com/ambit-go/ambit/locks/internal/turns"
)

// A Store keeps locks in etcd.
type Store struct {
	client   *clientv3.Client
	own      bool // Close closes the client
	kv       clientv3.KV
	leaseRPC pb.LeaseClient
	prefix   string
	warn     func(text string)
	id       string // of this process, for hints
	clock    *lease.Clock
	newest   atomic.Int64 // the newest revision that etcd has told

	turns   turns.Turns
	guesses guesses
	leases  leases
	keeper  keeper
	board   hint.Board[locks.Name]
	watches watches
	tidier  tidier

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

var _ locks.Store = (*Store)(nil)

// An Option changes a store.
type Option func(*Store)

// Prefix is what all keys begin with. Defaults to "locks/". An empty one panics.
func Prefix(p string) Option {
	if p == "" {
		panic("etcdstore: Prefix of no bytes: say what all keys begin with")
	}
	return func(s *Store) { s.prefix = p }
}

// Warn has f told what is wrong with the cluster, and what to do. Defaults to a line of package
// log/slog for each.
func Warn(f func(text string)) Option { return func(s *Store) { s.warn = f } }

// New returns the store in the cluster of a client. A cluster that is older than 3.6 is an error:
// there a member that leads no longer may still renew leases. Close the store before the client,
// which it does not close. A KV, Watcher or Lease that was put into the client, as for a namespace,
// is not used: [Prefix] keeps stores apart.
func New(ctx context.Context, client *clientv3.Client, opts ...Option) (*Store, error) {
	conn := client.ActiveConnection()
	s := &Store{
		client: client, kv: clientv3.NewKV(client), leaseRPC: pb.NewLeaseClient(conn), prefix: "locks/",
		warn: func(text string) { slog.Warn("locks: " + text) }, id: rand.Text(), clock: lease.NewClock(),
	}
	for _, opt := range opts {
		opt(s)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.leases = leases{s: s, classes: map[int64]chan class{}}
	s.keeper = keeper{s: s, terms: map[string]*term{}}
	s.watches = watches{s: s, watcher: clientv3.NewWatcher(client), by: map[locks.Name]*watch{}}
	s.tidier = tidier{s: s, at: map[string]string{}}
	s.guesses.by = map[locks.Name]*state{}
	if err := s.inspect(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// inspectTime is how long one member may take to say its version.
const inspectTime = 5 * time.Second

// inspect looks at the version of a member that answers.
func (s *Store) inspect(ctx context.Context) (err error) {
	for range s.client.Endpoints() { // one that stands still may be asked first
		var version string
		if version, err = s.version(ctx); err == nil {
			return supported(version)
		}
	}
	return err
}

// version asks a member. The client's own Status asks again and again while it cannot reach one, and
// in the end does not say why, as if a certificate is not believed.
func (s *Store) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	status, err := pb.NewMaintenanceClient(s.client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
	return status.GetVersion(), classed(ctx, err)
}

// supported says what is wrong with a version of etcd.
func supported(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 3 || major == 3 && minor < 6 {
		return invalid(fmt.Sprintf("the etcd server has version %q: 3.6 or newer is needed", version))
	}
	return nil
}

// Traits says that etcd can do everything, with leases of two seconds or more.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "etcd", MinLease: 2 * time.Second, Hints: true}
}

// noticed is called with the revision of each answer, and the newest that was known before the
// question. An older one is that of an etcd whose data were put back.
func (s *Store) noticed(before, revision int64) {
	newest := s.newest.Load()
	switch {
	case revision > newest:
		s.newest.CompareAndSwap(newest, revision)
	case revision < before && revision < newest && s.newest.CompareAndSwap(newest, revision):
		s.guesses.drop()
		s.warn(fmt.Sprintf("etcd has gone back from revision %d to %d, so it was restored: tokens are given again that were "+
			"given before. Restore it with a greater revision (etcdutl snapshot restore --bump-revision N --mark-compacted), "+
			"or begin anew where tokens are checked", newest, revision))
	}
}

// Advice is what nobody can find out by looking at the cluster.
func (s *Store) Advice() string {
	return "after a restore tokens go back, unless it was done with a greater revision: " +
		"etcdutl snapshot restore --bump-revision N --mark-compacted"
}

// Close ends what the store does by itself, and the client if Open has made it. It releases no
// lock.
func (s *Store) Close() error {
	s.watches.mu.Lock()
	s.cancel() // from now on there are no new tasks
	s.watches.mu.Unlock()
	s.keeper.close()
	err := s.watches.watcher.Close()
	s.tasks.Wait()
	if s.own {
		err = s.client.Close()
	}
	return err
}

// goes starts a task that ends soon after Close, unless the store is closed.
func (s *Store) goes(f func()) bool {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.tasks.Go(f)
	return true
}
