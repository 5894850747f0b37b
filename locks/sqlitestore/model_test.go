package sqlitestore

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

// TestDecidesAsTheBookDoes takes random steps with this store, whose short ways leave the
// book out, and with the one in memory, which has nothing but the book. Both have one
// clock, which also goes back, and say the same.
func TestDecidesAsTheBookDoes(t *testing.T) {
	for seed := range lockstest.Fewer(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, uint64(seed))
			for range 300 {
				m.step(t)
			}
		})
	}
}

type model struct {
	*rand.Rand
	sqlite, memory locks.Store
	now            int64
	ids            []string
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{Rand: rand.New(rand.NewPCG(seed, 1)), now: 1_000_000_000}
	s := opened(t, filepath.Join(t.TempDir(), "locks.db"))
	s.file.now = func() int64 { return m.now }
	m.sqlite, m.memory = s, memstore.WithClock(func() time.Time { return time.UnixMicro(m.now) })
	return m
}

func (m *model) id() string {
	if len(m.ids) == 0 || m.IntN(3) == 0 {
		m.ids = append(m.ids, fmt.Sprint("id-", len(m.ids)))
	}
	return m.ids[max(0, len(m.ids)-1-m.IntN(6))]
}

func (m *model) chance(n int) bool { return m.IntN(n) == 0 }

func (m *model) data() *string {
	if m.chance(3) {
		s := fmt.Sprint("data ", m.IntN(9))
		return &s
	}
	return nil
}

func (m *model) request(name locks.Name) locks.Request {
	id := m.id()
	q := locks.Request{
		ID: id, Version: "v-" + id, Owner: "owner-" + id, Kind: locks.Mutex, Lease: time.Duration(1+m.IntN(5)) * time.Second,
		Wait: m.chance(4), Barging: m.chance(8), Data: m.data(), OnlyIfExists: m.chance(10), DeleteOnRelease: m.chance(8),
	}
	if m.chance(3) {
		q.LockDelay = time.Second
	}
	switch name.Key {
	case "semaphore":
		q.Kind, q.Size, q.Permits, q.Resize, q.Strict = locks.Semaphore, 1+m.IntN(3), 1+m.IntN(2), m.chance(2), m.chance(4)
	case "rw":
		q.Kind, q.Shared = locks.ReadWrite, m.chance(2)
	}
	return q
}

func (m *model) ref() locks.Ref {
	if m.chance(5) {
		return locks.Ref{Version: "v-" + m.id()}
	}
	return locks.Ref{ID: m.id()}
}

// step takes one step with both, and compares the answers, and what there is after it.
func (m *model) step(t *testing.T) {
	ctx := t.Context()
	name := locks.Name{Tenant: "t", Key: []string{"mutex", "mutex", "mutex", "semaphore", "rw"}[m.IntN(5)]}
	m.now += int64(m.IntN(1_000_000)) - 20_000
	if m.chance(40) {
		m.now -= 30_000_000
	}
	var took func(s locks.Store) (any, error)
	switch m.IntN(12) {
	case 0, 1, 2, 3, 4:
		qs := []locks.Request{m.request(name)}
		if m.chance(6) {
			if q := m.request(name); q.ID != qs[0].ID {
				qs = append(qs, q)
			}
		}
		took = func(s locks.Store) (any, error) { return s.Acquire(ctx, name, qs) }
	case 5, 6, 7:
		ref, data := m.ref(), m.data()
		took = func(s locks.Store) (any, error) { return s.Release(ctx, name, ref, data) }
	case 8, 9:
		var all []locks.Renewal
		for _, key := range []string{"mutex", "semaphore", "rw"}[m.IntN(3):] {
			all = append(all, locks.Renewal{Name: locks.Name{Tenant: "t", Key: key}, Ref: m.ref(), Lease: time.Duration(1+m.IntN(5)) * time.Second})
		}
		if m.chance(4) {
			all[0].NewVersion, all[0].Data = "v-"+m.id(), m.data()
		}
		took = func(s locks.Store) (any, error) { return s.Renew(ctx, all) }
	case 10:
		ref := m.ref()
		if m.chance(2) {
			ref = locks.Ref{} // all
		}
		force := m.chance(3)
		took = func(s locks.Store) (any, error) { return s.Revoke(ctx, name, ref, force) }
	default:
		took = func(s locks.Store) (any, error) { return nil, s.Delete(ctx, name, "") }
	}
	got, err := took(m.sqlite)
	want, wantErr := took(m.memory)
	require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	require.Equal(t, want, got)
	for _, s := range []locks.Store{m.sqlite, m.memory} { // removes what has expired, which a short way may leave
		_, err := s.Revoke(ctx, name, locks.Ref{Version: "nobody's"}, false)
		require.NoError(t, err)
	}
	record, err := m.sqlite.Get(ctx, name)
	wantRecord, wantErr := m.memory.Get(ctx, name)
	require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	require.Equal(t, wantRecord, record)
}
