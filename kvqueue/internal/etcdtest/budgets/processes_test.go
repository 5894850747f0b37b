//go:build linux && kvbudgets

package budgets

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
	"github.com/ambit-go/ambit/kvqueue/internal/recipes"
)

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

// inGroups adds items of so many groups, in turn.
func inGroups(q *kvqueue.Queue, groups int) func(ctx context.Context, values ...[]byte) error {
	var n atomic.Int64
	return func(ctx context.Context, values ...[]byte) error {
		for some := range slices.Chunk(values, 30) {
			err := q.Transact(ctx, func(tx *kvqueue.Tx) {
				for _, v := range some {
					tx.Add(q, v, kvqueue.Group(fmt.Sprint("group-", n.Add(1)%int64(groups))))
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// TestManyProcesses is K7: 32 handles with a consumer each, and the same while one dies each second,
// and another comes. All transactions are counted, those that give items back, too. Then the items are of groups, which the race
// for the head knows nothing of.
func TestManyProcesses(t *testing.T) {
	const consumers = 32
	b := newBench(t)
	race := b.recipe(consumers, 20_000, recipes.RaceHead).rate
	for _, c := range []struct {
		dying  bool
		groups int
	}{{}, {dying: true}, {groups: 1000}, {groups: 1000, dying: true}, {groups: 40}} {
		name := b.name()
		in := b.open(b.store(), name)
		add, items := func(ctx context.Context, values ...[]byte) error {
			_, err := in.Enqueue(ctx, values...)
			return err
		}, 60_000
		if c.groups > 0 {
			add, items = inGroups(in, c.groups), 40_000
		}
		b.fill(items, add)
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
			if c.dying {
				die[i*5%consumers]()
				die[i*5%consumers] = start()
			}
			time.Sleep(time.Second)
		}
		took := float64(taken.Load()-before) / time.Since(begin).Seconds()
		what, least, most := "32 handles with a consumer each", atLeast(4), atMost(2)
		if c.dying {
			what += ", one dies each second"
		}
		if c.groups > 0 { // of which the budget says nothing
			what, least, most = fmt.Sprintf("%s, %d groups", what, c.groups), budget{}, budget{}
		}
		r := beside("K7", what, []float64{took}, "race for the head", []float64{race}, "/s", least)
		r.Once = true
		tell(r)
		share := 100 * float64(conflicts.Load()) / float64(max(1, tries.Load()))
		tell(row{ID: "K7", What: what + ": conflicts of all transactions", Unit: "%", Ours: []float64{share}, Budget: most, Once: true})
		stop()
		running.Wait()
	}
}

// holds is the variable of the environment with the endpoint and the name of the queue of a process that takes an item and never ends it.
const holds = "KVBUDGETS_HOLDS"

// sessionTTL is that of the process.
const sessionTTL = 2 * time.Second

func holdItem(endpoint string) {
	client, err := etcdtest.NewClient([]string{endpoint})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	q, err := kvqueue.Open(ctx, etcdkv.New(client), os.Getenv(holds+"_QUEUE"), kvqueue.CompactedElsewhere(), kvqueue.TTL(sessionTTL))
	if err != nil {
		panic(err)
	}
	panic(q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error {
		fmt.Println("taken")
		select {}
	}))
}

// TestKilled is K6: how long it takes from kill -9 of a consumer until another has its item.
func TestKilled(t *testing.T) {
	b := newBench(t)
	var took []float64
	for range rounds {
		name := b.name()
		q := b.open(b.store(), name)
		_, err := q.Enqueue(b.Context(), []byte("x"))
		require.NoError(b, err)
		consumer := exec.CommandContext(b.Context(), os.Args[0])
		consumer.Env = append(os.Environ(), holds+"="+b.cluster.Endpoints()[0], holds+"_QUEUE="+name)
		consumer.Stderr = os.Stderr
		out, err := consumer.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, consumer.Start())
		require.True(b, bufio.NewScanner(out).Scan(), "it has taken the item")
		begin := time.Now()
		require.NoError(b, consumer.Process.Kill())
		require.NoError(b, q.Do(b.Context(), 1, func(context.Context, []kvqueue.Item) error {
			took = append(took, time.Since(begin).Seconds()*1e3)
			return nil
		}))
		_ = consumer.Wait()
	}
	limit := float64((sessionTTL + 700*time.Millisecond).Milliseconds())
	tell(row{ID: "K6", What: fmt.Sprintf("kill -9 until the item is claimed again, TTL %v", sessionTTL), Unit: "ms", Ours: took, Budget: atMost(limit)})
}
