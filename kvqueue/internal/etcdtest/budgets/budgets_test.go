//go:build linux && kvbudgets

package budgets

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(holds); endpoint != "" {
		holdItem(endpoint)
		return
	}
	if path := os.Getenv(consumes); path != "" {
		if err := consumeFile(path); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// turn is for how long each side of a row is measured at a time, and rounds how many turns it has: enough for a verdict.
const (
	turn   = 2 * time.Second
	rounds = 5
)

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
