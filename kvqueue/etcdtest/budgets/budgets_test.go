//go:build linux && kvbudgets

package budgets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/etcdtest"
	"github.com/ambit-go/ambit/kvqueue/internal/recipes"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	os.Exit(m.Run())
}

// turn is for how long each row is measured.
const turn = 3 * time.Second

// perBatch is how many items a transaction adds before a row is measured.
const perBatch = 50

// A bench is a cluster of one member.
type bench struct {
	*testing.T
	cluster *etcdtest.Cluster
	names   atomic.Int64
}

func newBench(t *testing.T) *bench {
	return &bench{T: t, cluster: etcdtest.Start(t, 1, etcdtest.Sync())}
}

func (b *bench) store() *etcdkv.Store { return etcdkv.New(b.cluster.Client(b)) }

func (b *bench) name() string { return fmt.Sprintf("q%d", b.names.Add(1)) }

func (b *bench) open(kv kvqueue.KV, name string) *kvqueue.Queue {
	q, err := kvqueue.Open(b.Context(), kv, name, kvqueue.CompactedElsewhere())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, q.Close(context.Background())) })
	return q
}

func values(n int) [][]byte { return slices.Repeat([][]byte{[]byte("0123456789abcdef")}, n) }

// fill adds items by several producers: more than a row takes in its turn.
func (b *bench) fill(items int, enqueue func(ctx context.Context, values ...[]byte) error) {
	var all sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(items))
	for range 8 {
		all.Go(func() {
			for left.Add(-perBatch) > -perBatch {
				if err := enqueue(b.Context(), values(perBatch)...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// run calls take by consumers again and again until the turn is over, and returns how many items each
// had, and how long that took.
func (b *bench) run(consumers int, take func(ctx context.Context, consumer int) (int, error)) (each []int64, took time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), turn)
	defer cancel()
	each = make([]int64, consumers)
	var all sync.WaitGroup
	begin := time.Now()
	for c := range consumers {
		all.Go(func() {
			for ctx.Err() == nil {
				n, err := take(ctx, c)
				if ctx.Err() == nil && err != nil {
					b.Errorf("consumer %d: %v", c, err)
					return
				}
				each[c] += int64(n)
			}
		})
	}
	all.Wait()
	return each, time.Since(begin)
}

func sum(each []int64) (n int64) {
	for _, e := range each {
		n += e
	}
	return n
}

// row prints a row: how many items a second, which share of the transactions was spoilt, and how much
// more the first consumer had than the last.
func (b *bench) row(what string, consumers int, each []int64, took time.Duration, tries, conflicts int64) float64 {
	rate, share := float64(sum(each))/took.Seconds(), "-"
	if tries > 0 {
		share = fmt.Sprintf("%.1f %%", 100*float64(conflicts)/float64(tries))
	}
	fmt.Printf("%-44s %3d consumers %9.0f items/s  conflicts %7s  max/min %.2f\n", what, consumers, rate, share,
		float64(slices.Max(each))/float64(max(1, slices.Min(each))))
	return rate
}

// recipe measures one of the recipes.
func (b *bench) recipe(what string, consumers, items int, of func(kvqueue.KV, string) *recipes.Queue) float64 {
	kv := b.store()
	q := of(kv, b.name()+"/")
	b.fill(items, q.Enqueue)
	each, took := b.run(consumers, func(ctx context.Context, _ int) (int, error) {
		_, ok, err := q.Dequeue(ctx)
		if !ok || err != nil {
			return 0, err
		}
		return 1, nil
	})
	tries, conflicts := q.Tries()
	return b.row(what, consumers, each, took, tries, conflicts)
}

// etcds measures the queue of etcd. It reads all of the queue for each item, so there are few.
func (b *bench) etcds(consumers, items int) {
	client, name := b.cluster.Client(b), b.name()+"/"
	q := recipe.NewQueue(client, name)
	b.fill(items, func(_ context.Context, values ...[]byte) error {
		for _, v := range values {
			if err := q.Enqueue(string(v)); err != nil {
				return err
			}
		}
		return nil
	})
	left := atomic.Int64{}
	left.Store(int64(items) - int64(consumers)) // it cannot be told to stop waiting
	each, took := b.run(consumers, func(context.Context, int) (int, error) {
		if left.Add(-1) < 0 {
			return 0, sleep()
		}
		_, err := q.Dequeue()
		return 1, err
	})
	b.row(fmt.Sprintf("etcd's recipe.Queue, %d items", items), consumers, each, took, 0, 0)
}

func sleep() error { time.Sleep(10 * time.Millisecond); return nil }

// ours measures package kvqueue: so many handles, each with a client of its own, as processes have, share the
// consumers.
func (b *bench) ours(what string, handles, consumers, items int) float64 {
	name := b.name()
	in := b.open(b.store(), name)
	b.fill(items, func(ctx context.Context, values ...[]byte) error {
		_, err := in.Enqueue(ctx, values...)
		return err
	})
	var queues []*kvqueue.Queue
	for range handles {
		queues = append(queues, b.open(b.store(), name))
	}
	each, took := b.run(consumers, func(ctx context.Context, c int) (n int, err error) {
		err = queues[c%handles].Do(ctx, 1, func(context.Context, []kvqueue.Item) error { n = 1; return nil })
		return n, err
	})
	var claimed, conflicts int64
	for _, q := range queues {
		s := q.Stats()
		claimed, conflicts = claimed+s.Claimed, conflicts+s.Conflicts
	}
	return b.row(what, consumers, each, took, claimed, conflicts)
}

// consumed measures package kvqueue as its users have it: each consumer is a Consume with one worker.
func (b *bench) consumed(what string, handles, consumers, items int) float64 {
	name := b.name()
	in := b.open(b.store(), name)
	b.fill(items, func(ctx context.Context, values ...[]byte) error {
		_, err := in.Enqueue(ctx, values...)
		return err
	})
	var queues []*kvqueue.Queue
	for range handles {
		queues = append(queues, b.open(b.store(), name))
	}
	each, took := b.run(consumers, func(ctx context.Context, c int) (n int, err error) {
		return n, queues[c%handles].Consume(ctx, 1, 1, func(context.Context, []kvqueue.Item) error { n++; return nil })
	})
	var claimed, conflicts int64
	for _, q := range queues {
		s := q.Stats()
		claimed, conflicts = claimed+s.Claimed, conflicts+s.Conflicts
	}
	return b.row(what, consumers, each, took, claimed, conflicts)
}

// claimed measures claims alone, of consumers that acknowledge nothing while it lasts.
func (b *bench) claimed(what string, consumers, items int) float64 {
	q := b.open(b.store(), b.name())
	b.fill(items, func(ctx context.Context, values ...[]byte) error {
		_, err := q.Enqueue(ctx, values...)
		return err
	})
	ended := errors.New("the turn is over")
	var each []int64
	var took time.Duration
	err := async.Scope(b.Context(), func(ctx context.Context) error {
		each, took = b.run(consumers, func(context.Context, int) (int, error) {
			taken, err := q.Take(ctx, 1)
			return len(taken), err
		})
		return ended
	})
	require.ErrorIs(b, err, ended)
	return b.row(what, consumers, each, took, 0, 0)
}

// TestTable is the table of the contract, and K1, K4 and K5: items a second, conflicts, and fairness.
func TestTable(t *testing.T) {
	b := newBench(t)
	race := map[int]float64{}
	for _, c := range []int{1, 8, 32} {
		race[c] = b.recipe("race for the head", c, 20_000, recipes.RaceHead)
	}
	for _, c := range []int{8, 32} {
		b.recipe("staging, everybody fulfils", c, 20_000, recipes.Staging)
	}
	for _, c := range []int{1, 8, 32} {
		b.recipe("relaxed: one of the first 8 W", c, 20_000, func(kv kvqueue.KV, prefix string) *recipes.Queue {
			return recipes.Relaxed(kv, prefix, 8*c)
		})
	}
	for _, c := range []int{1, 8, 32} {
		b.etcds(c, 1000)
	}
	b.consumed("kvqueue, a handle each", 1, 1, 20_000)
	b.consumed("kvqueue, a handle each", 8, 8, 40_000)
	one := b.consumed("kvqueue, one handle (K1, K4: 25,000/s)", 1, 32, 100_000)
	eight := b.consumed("kvqueue, 8 handles (K1, K5: 1.5)", 8, 32, 60_000)
	fmt.Printf("K1: one handle has %.1f times the race at 32 consumers (10), 8 handles %.1f times (6)\n", one/race[32], eight/race[32])
}

// TestOneProcess is K4, on the disk of the folder for temporary files and on a disk in memory: what the
// sync costs is the difference.
func TestOneProcess(t *testing.T) {
	for _, disk := range []string{os.TempDir(), "/dev/shm"} {
		t.Run(disk, func(t *testing.T) {
			if info, err := os.Stat(disk); err != nil || !info.IsDir() {
				t.Skipf("there is no %s", disk)
			}
			t.Setenv("TMPDIR", disk)
			b := newBench(t)
			fmt.Printf("on %s:\n", disk)
			one := b.consumed("one consumer", 1, 1, 20_000)
			do := b.ours("one handle, Do", 1, 32, 60_000)
			many := b.consumed("one handle, Consume (K4: 25,000/s)", 1, 32, 100_000)
			claims := b.claimed("one handle, claims alone", 32, 100_000)
			fmt.Printf("K4 on %s: 32 consumers have %.1f times one consumer, %.1f with Do, %.1f if they only claim\n", disk, many/one, do/one, claims/one)
		})
	}
}

// TestEnqueue is K2: how many transactions of enqueues others have spoilt, with consumers under way.
func TestEnqueue(t *testing.T) {
	b := newBench(t)
	name := b.name()
	var tries, conflicts atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	var consumer sync.WaitGroup
	out := b.open(b.store(), name)
	consumer.Go(func() {
		_ = out.Consume(ctx, 8, 1, func(context.Context, []kvqueue.Item) error { return nil })
	})
	var queues []*kvqueue.Queue
	for range 8 {
		queues = append(queues, b.open(&counted{b.store(), adds, &tries, &conflicts}, name))
	}
	each, took := b.run(32, func(ctx context.Context, c int) (int, error) {
		_, err := queues[c%8].Enqueue(ctx, []byte("x"))
		return 1, err
	})
	cancel()
	consumer.Wait()
	b.row("K2: enqueues of 8 handles (0.1 %)", 32, each, took, tries.Load(), conflicts.Load())
}

// A counted is a store that counts transactions, and those that others have spoilt.
type counted struct {
	kvqueue.KV
	counts           func(writes []kvqueue.Write) bool
	tries, conflicts *atomic.Int64
}

func (c *counted) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := c.KV.Commit(ctx, guards, writes)
	if c.counts(writes) {
		c.tries.Add(1)
		if errors.Is(err, kvqueue.ErrConflict) {
			c.conflicts.Add(1)
		}
	}
	return rev, err
}

// adds says whether a transaction adds payloads.
func adds(writes []kvqueue.Write) bool {
	return slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete && strings.Contains(string(w.Key), "/d/") })
}

// A mortal store is that of a process, which may die: then it sends nothing any more.
type mortal struct {
	kvqueue.KV
	dead chan struct{}
}

func (m *mortal) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	select {
	case <-m.dead:
		<-ctx.Done()
		return 0, ctx.Err()
	default:
		return m.KV.Commit(ctx, guards, inner(writes))
	}
}

func (m *mortal) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	s, err := m.KV.Session(ctx, ttl)
	return mortalSession{s, m}, err
}

type mortalSession struct {
	kvqueue.Session
	of *mortal
}

func (s mortalSession) Renew(ctx context.Context) error {
	select {
	case <-s.of.dead:
		<-ctx.Done()
		return ctx.Err()
	default:
		return s.Session.Renew(ctx)
	}
}

// inner gives the store its own sessions.
func inner(writes []kvqueue.Write) []kvqueue.Write {
	own := slices.Clone(writes)
	for i, w := range own {
		if s, ok := w.Session.(mortalSession); ok {
			own[i].Session = s.Session
		}
	}
	return own
}

// TestManyProcesses is K7: 32 handles with a consumer each, and the same while one dies each second,
// and another comes. All transactions are counted, those that give items back, too.
func TestManyProcesses(t *testing.T) {
	const consumers = 32
	b := newBench(t)
	race := b.recipe("race for the head", consumers, 20_000, recipes.RaceHead)
	for _, dying := range []bool{false, true} {
		name := b.name()
		in := b.open(b.store(), name)
		b.fill(60_000, func(ctx context.Context, values ...[]byte) error {
			_, err := in.Enqueue(ctx, values...)
			return err
		})
		var tries, conflicts, taken atomic.Int64
		all := func([]kvqueue.Write) bool { return true }
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		start := func() (die func()) {
			m := &mortal{b.store(), make(chan struct{})}
			q, err := kvqueue.Open(b.Context(), &counted{m, all, &tries, &conflicts}, name, kvqueue.CompactedElsewhere(), kvqueue.TTL(2*time.Second))
			require.NoError(b, err)
			die = sync.OnceFunc(func() { close(m.dead) })
			running.Go(func() {
				_ = q.Consume(ctx, 1, 1, func(context.Context, []kvqueue.Item) error { taken.Add(1); return nil })
				die()
				closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_ = q.Close(closing)
			})
			return die
		}
		var die []func()
		for range consumers {
			die = append(die, start())
		}
		time.Sleep(2 * time.Second) // they have met
		tries.Store(0)
		conflicts.Store(0)
		begin, before := time.Now(), taken.Load()
		for i := range 8 {
			if dying {
				die[i*5%consumers]()
				die[i*5%consumers] = start()
			}
			time.Sleep(time.Second)
		}
		rate := float64(taken.Load()-before) / time.Since(begin).Seconds()
		what := "kvqueue, 32 handles with a consumer each"
		if dying {
			what += ", one dies each second"
		}
		fmt.Printf("K7: %s: %.0f items/s, %.1f times the race (4); conflicts %.1f %% of all transactions (2)\n",
			what, rate, rate/race, 100*float64(conflicts.Load())/float64(max(1, tries.Load())))
		stop()
		running.Wait()
	}
}

// TestDepth is K3: how long one dequeue takes, by the length of the queue.
func TestDepth(t *testing.T) {
	b := newBench(t)
	for _, depth := range []int{100, 1000, 10_000, 100_000} {
		q := b.open(b.store(), b.name())
		b.fill(depth+500, func(ctx context.Context, values ...[]byte) error {
			_, err := q.Enqueue(ctx, values...)
			return err
		})
		const n = 400
		begin := time.Now()
		for range n {
			require.NoError(b, q.Do(b.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		}
		fmt.Printf("K3: a queue of %7d items: %v an item\n", depth, (time.Since(begin) / n).Round(time.Microsecond))
	}
}
