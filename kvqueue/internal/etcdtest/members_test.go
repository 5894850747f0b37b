//go:build linux

package etcdtest_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// A flow is producers and consumers that go on while something happens to the cluster.
type flow struct {
	mu      sync.Mutex
	added   map[string]bool // true: the queue has said so; false: it does not know
	handled map[string]int
	failed  []error // answers that are neither
}

// run has two producers add items until stop, and consumers take them until nothing is
// left.
func (f *flow) run(t *testing.T, cluster *etcdtest.Cluster, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var producers, consumers sync.WaitGroup
	var last *kvqueue.Queue
	for p := range 2 {
		q := open(t, etcdkv.New(cluster.Client(t), etcdkv.Timeout(2*time.Second)), t.Name(), kvqueue.TTL(5*time.Minute))
		producers.Go(func() { f.produce(t.Context(), q, p, stop) })
		consumers.Go(func() {
			_ = q.Consume(ctx, 4, 1, func(_ context.Context, items []kvqueue.Item) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.handled[string(items[0].Value)]++
				return nil
			})
		})
		last = q
	}
	producers.Wait()
	eventually(t, "the queue is empty", func() bool {
		n, err := last.Len(t.Context())
		return err == nil && n == kvqueue.Length{}
	})
	cancel()
	consumers.Wait()
}

func (f *flow) produce(ctx context.Context, q *kvqueue.Queue, producer int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		name := strconv.Itoa(producer) + "/" + strconv.Itoa(i)
		_, err := q.Enqueue(ctx, []byte(name))
		f.mu.Lock()
		switch {
		case err != nil && strings.Contains(err.Error(), "has not done the transaction in"):
			i-- // nothing was added, as the cluster was away for long
		case err == nil:
			f.added[name] = true
		case errors.Is(err, kvqueue.ErrUnknown):
			f.added[name] = false
		default:
			f.failed = append(f.failed, err)
		}
		f.mu.Unlock()
	}
}

func (f *flow) count() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.handled) }

// more waits until some more items were handled.
func (f *flow) more(t *testing.T) {
	t.Helper()
	begin := f.count()
	eventually(t, "items flow", func() bool { return f.count() > begin+50 })
}

// audit: what was added was handled, and nothing else was. No session ended, so once.
func (f *flow) audit(t *testing.T) {
	unknown := 0
	for name, sure := range f.added {
		if !sure {
			unknown++
		}
		assert.True(t, f.handled[name] == 1 || !sure && f.handled[name] == 0, "%s (%v) was handled %d times", name, sure, f.handled[name])
	}
	for name := range f.handled {
		assert.Contains(t, f.added, name)
	}
	t.Logf("%d items, of which %d it was not known", len(f.added), unknown)
	assert.Empty(t, f.failed)
}

func TestItemsSurviveWhatHappensToMembers(t *testing.T) {
	cluster := etcdtest.Start(t, 3) // in the end all run, so the next queue can have it, too
	for name, happens := range map[string]func(t *testing.T, c *etcdtest.Cluster, leader *etcdtest.Member, f *flow){
		"the leader is killed, and comes back": func(t *testing.T, _ *etcdtest.Cluster, leader *etcdtest.Member, f *flow) {
			leader.Kill()
			f.more(t)
			require.NoError(t, leader.Start())
		},
		"the leader stands still": func(t *testing.T, _ *etcdtest.Cluster, leader *etcdtest.Member, f *flow) {
			require.NoError(t, leader.Stop())
			f.more(t)
			require.NoError(t, leader.Continue())
		},
		"a follower is killed, and comes back": func(t *testing.T, c *etcdtest.Cluster, leader *etcdtest.Member, f *flow) {
			m := other(c, leader)
			m.Kill()
			f.more(t)
			require.NoError(t, m.Start())
		},
		"another is made the leader": func(t *testing.T, c *etcdtest.Cluster, leader *etcdtest.Member, _ *flow) {
			eventually(t, "another is the leader", func() bool { // on a busy machine it may be none any more
				client, err := etcdtest.NewClient([]string{leader.Endpoint})
				require.NoError(t, err)
				defer client.Close()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				s, err := client.Status(ctx, other(c, leader).Endpoint)
				if err == nil {
					_, err = client.MoveLeader(ctx, s.Header.MemberId)
				}
				leader = c.Leader(t)
				return err == nil
			})
		},
		"all are killed, and come back": func(t *testing.T, c *etcdtest.Cluster, _ *etcdtest.Member, _ *flow) {
			c.Restart(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flow{added: map[string]bool{}, handled: map[string]int{}}
			stop, over := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				f.run(t, cluster, stop)
			}()
			f.more(t)
			happens(t, cluster, cluster.Leader(t), f)
			f.more(t)
			close(stop)
			<-over
			f.audit(t)
		})
	}
}

// other returns a member that is not this one.
func other(c *etcdtest.Cluster, m *etcdtest.Member) *etcdtest.Member {
	if c.Members[0] != m {
		return c.Members[0]
	}
	return c.Members[1]
}
