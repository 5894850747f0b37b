package locks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// lease is that of all locks here.
const lease = 10 * time.Second

// A taker takes the lock of a key, and returns what gives it back.
type taker func(ctx context.Context, key string) (release func(), err error)

// A library makes takers, one for each worker, as workers in processes of their own have
// them.
type library struct {
	name string
	make func() taker
}

// ours is this project on a store.
func ours(t *testing.T, name string, open func() locks.Store) library {
	return library{name, func() taker {
		m := manager(t, open())
		return func(ctx context.Context, key string) (func(), error) {
			h, err := m.Acquire(ctx, key)
			if err != nil {
				return nil, err
			}
			return func() { _ = h.Release(ctx) }, nil
		}
	}}
}

func manager(t *testing.T, s locks.Store, opts ...locks.Option) *locks.Manager {
	m, err := locks.New(s, append([]locks.Option{locks.Lease(lease)}, opts...)...)
	require.NoError(t, err)
	return m
}

// opener opens handles of a store, each as another process would.
func opener(t *testing.T, url string) func() locks.Store {
	return func() locks.Store {
		s, err := locks.Open(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

func redisPeers(t *testing.T, s *servers.Server) []library {
	client := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: s.Address})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return []library{
		{"bsm/redislock", func() taker {
			l := redislock.New(client())
			return func(ctx context.Context, key string) (func(), error) {
				got, err := l.Obtain(ctx, "redislock-"+key, lease, &redislock.Options{RetryStrategy: redislock.ExponentialBackoff(8*time.Millisecond, 256*time.Millisecond)})
				if err != nil {
					return nil, err
				}
				return func() { _ = got.Release(ctx) }, nil
			}
		}},
		{"redsync", func() taker {
			r := redsync.New(goredis.NewPool(client()))
			return func(ctx context.Context, key string) (func(), error) {
				m := r.NewMutex("redsync-"+key, redsync.WithExpiry(lease), redsync.WithTries(100_000))
				if err := m.LockContext(ctx); err != nil {
					return nil, err
				}
				return func() { _, _ = m.UnlockContext(ctx) }, nil
			}
		}},
		{"rueidislock", func() taker {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{InitAddress: []string{s.Address}}, KeyMajority: 1, KeyValidity: lease,
			})
			require.NoError(t, err)
			t.Cleanup(l.Close)
			return func(ctx context.Context, key string) (func(), error) {
				_, release, err := l.WithContext(ctx, key)
				return release, err
			}
		}},
	}
}

// byHand is a table of locks as it is written by hand, and as libraries for PostgreSQL have
// it: a transaction that takes the row and reads it back, a transaction that gives it back.
func byHand(t *testing.T, url string) library {
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), "CREATE TABLE by_hand (name text PRIMARY KEY, token bigserial, owner text, until timestamptz)")
	require.NoError(t, err)
	n := 0
	return library{"by hand, a transaction each", func() taker {
		n++
		owner := fmt.Sprint(n)
		return func(ctx context.Context, key string) (func(), error) {
			for {
				var holder string
				err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `INSERT INTO by_hand (name, owner, until) VALUES ($1, $2, now() + '10 s') ON CONFLICT (name) DO UPDATE
						SET owner = excluded.owner, until = excluded.until, token = DEFAULT WHERE by_hand.owner IS NULL OR by_hand.until < now()`, key, owner)
					if err == nil {
						err = tx.QueryRow(ctx, "SELECT coalesce(owner, '') FROM by_hand WHERE name = $1", key).Scan(&holder)
					}
					return err
				})
				if err != nil {
					return nil, err
				}
				if holder == owner {
					break
				}
				time.Sleep(8 * time.Millisecond)
			}
			return func() {
				_ = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, "UPDATE by_hand SET owner = NULL WHERE name = $1 AND owner = $2", key, owner)
					return err
				})
			}, nil
		}
	}}
}

// etcdPeer is the mutex of etcd itself.
func etcdPeer(t *testing.T, s *servers.Server) []library {
	return []library{{"etcd, concurrency.Mutex", func() taker {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Address}, DialTimeout: 30 * time.Second})
		require.NoError(t, err)
		session, err := concurrency.NewSession(c, concurrency.WithTTL(int(lease/time.Second)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = session.Close(); _ = c.Close() })
		return func(ctx context.Context, key string) (func(), error) {
			m := concurrency.NewMutex(session, "/locks/"+key)
			if err := m.Lock(ctx); err != nil {
				return nil, err
			}
			return func() { _ = m.Unlock(ctx) }, nil
		}
	}}}
}

// row prints a line of a table.
func row(cells ...any) {
	var b strings.Builder
	for i, c := range cells {
		width := 12
		if i == 0 {
			width = 44
		}
		if d, ok := c.(time.Duration); ok {
			c = d.Round(time.Microsecond)
		}
		fmt.Fprintf(&b, "%-*v ", width, c)
	}
	fmt.Println(strings.TrimRight(b.String(), " "))
}
