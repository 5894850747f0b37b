package kvqueue_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// The code of README.md stands here.

func orders(ctx context.Context, kv kvqueue.KV, ship func(context.Context, []byte) error) error {
	q, err := kvqueue.Open(ctx, kv, "orders", kvqueue.MaxAttempts(5))
	if err != nil {
		return err
	}
	defer q.Close(context.WithoutCancel(ctx))
	if _, err := q.Enqueue(ctx, []byte("order 1"), []byte("order 2")); err != nil {
		return err
	}
	err = q.Consume(ctx, 8, 1, func(ctx context.Context, items []kvqueue.Item) error {
		return ship(ctx, items[0].Value)
	})
	if ctx.Err() != nil { // Ctrl-C, by signal.NotifyContext: what was not done has gone back
		return nil
	}
	return err
}

func onward(ctx context.Context, in, out *kvqueue.Queue) error {
	return in.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
		return in.Commit(ctx, items, func(tx *kvqueue.Tx) {
			tx.Put([]byte("shipped/"+items[0].Key.String()), items[0].Value)
			tx.Enqueue(out, items[0].Value)
		})
	})
}

func addOrder(ctx context.Context, q *kvqueue.Queue, order []byte) error {
	_, err := q.Add(ctx, order, kvqueue.ID("order-17"))
	for errors.Is(err, kvqueue.ErrUnknown) && ctx.Err() == nil {
		_, err = q.Add(ctx, order, kvqueue.ID("order-17"))
	}
	return err
}

func pay(ctx context.Context, q *kvqueue.Queue, payment []byte) error {
	_, err := q.Add(ctx, payment, kvqueue.Group("customer-17"))
	return err
}

func shared() (*sqlitekv.Store, error) {
	kv, err := sqlitekv.Open("orders.db")
	return kv, err
}

func cluster(ctx context.Context, secure *tls.Config) (*kvqueue.Queue, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{"10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"},
		DialKeepAliveTime:    10 * time.Second, // a member that does not answer any more is noticed
		DialKeepAliveTimeout: 3 * time.Second,
		TLS:                  secure, // nil: none
	})
	if err != nil {
		return nil, err
	}
	kv := etcdkv.New(client)
	q, err := kvqueue.Open(ctx, kv, "orders", kvqueue.Compact(10*time.Minute))
	return q, err
}

var _ = cluster // there is no cluster at these addresses

func TestTheReadmeShowsCodeThatCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		for _, line := range strings.Split(string(b[1]), "\n") {
			require.Contains(t, string(source), strings.TrimSpace(line))
		}
	}
}

func TestTheReadmesExamplesDoWhatTheySay(t *testing.T) {
	t.Chdir(t.TempDir())
	kv, err := shared()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kv.Close()) })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	shipped := make(chan string, 100) // what a worker has that is told to stop goes back, and another may have it before it stops, too
	require.NoError(t, orders(ctx, kv, func(_ context.Context, order []byte) error {
		if shipped <- string(order); len(shipped) == 2 {
			stop()
		}
		return nil
	}))
	assert.ElementsMatch(t, []string{"order 1", "order 2"}, []string{<-shipped, <-shipped})

	added := open(t, kv, "added")
	require.NoError(t, addOrder(t.Context(), added, []byte("order 17")))
	require.NoError(t, addOrder(t.Context(), added, []byte("order 17")))
	assert.Equal(t, []string{"order 17"}, all(t, added))

	in, out := open(t, kv, "in"), open(t, kv, "out")
	require.NoError(t, pay(t.Context(), open(t, kv, "payments"), []byte("payment 1")))
	pos, err := in.Enqueue(t.Context(), []byte("order 3"))
	require.NoError(t, err)
	require.NoError(t, onward(t.Context(), in, out))
	next, err := out.Peek(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, next, 1)
	assert.Equal(t, "order 3", string(next[0].Value))
	results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("shipped/" + pos.First.String())})
	require.NoError(t, err)
	require.Len(t, results[0].Pairs, 1)
}

// Pages refer to each other, and to files of this repository.
func TestThePagesOfTheQueueReferToWhatIsThere(t *testing.T) {
	for _, page := range []string{"README.md", "../docs/kvqueue.md", "../docs/kvqueue-foundationdb.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		links := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllSubmatch(text, -1)
		require.NotEmpty(t, links, page)
		for _, l := range links {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), string(l[1])))
			assert.NoError(t, err, page)
		}
	}
}
