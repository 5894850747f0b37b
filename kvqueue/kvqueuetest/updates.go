package kvqueuetest

import (
	"errors"
	"strconv"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// updater returns the store if it is an Updater; otherwise the test is over.
func (f *fixture) updater() kvqueue.Updater {
	f.Helper()
	if !f.kv.Limits().Updates {
		f.Skip("this store does not read and write in one transaction")
	}
	u, ok := f.kv.(kvqueue.Updater)
	require.True(f, ok, "its limits say that it has Update")
	return u
}

// updatesRace counts: each reads the number, and writes the next. No number is lost, and nobody
// has to try again.
func updatesRace(f *fixture) {
	u := f.updater()
	f.must(f.put("n", "0"))
	const rivals, rounds = 4, 25
	var all sync.WaitGroup
	for range rivals {
		all.Go(func() {
			for range rounds {
				_, err := u.Update(f.ctx, []kvqueue.Range{{Begin: f.key("n")}}, func(results []kvqueue.Result, rev kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error) {
					p := results[0].Pairs[0]
					assert.GreaterOrEqual(f, rev, p.Rev)
					n, err := strconv.Atoi(string(p.Value))
					return []kvqueue.Guard{{Key: f.key("n"), Is: kvqueue.Unchanged, Rev: p.Rev}}, []kvqueue.Write{f.put("n", strconv.Itoa(n+1))}, err
				})
				assert.NoError(f, err)
			}
		})
	}
	all.Wait()
	value, _ := f.value("n")
	assert.Equal(f, strconv.Itoa(rivals*rounds), value)
}

func glances(f *fixture) {
	u := f.updater()
	rev := f.must(f.put("a", "1"), f.put("b", "2"), f.put("c", "3"))
	span := f.span("a", "d")
	span.Limit = 2
	results, at, err := u.Glance(f.ctx, span, kvqueue.Range{Begin: f.key("c")})
	require.NoError(f, err)
	assert.Equal(f, rev, at)
	assert.Equal(f, []string{"a=1", "b=2"}, f.text(results[0]))
	assert.True(f, results[0].More)
	assert.Equal(f, []string{"c=3"}, f.text(results[1]))
}

func updatesRefused(f *fixture) {
	u := f.updater()
	boom := errors.New("boom")
	_, err := u.Update(f.ctx, nil, func([]kvqueue.Result, kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error) {
		return nil, []kvqueue.Write{f.put("a", "")}, boom
	})
	require.ErrorIs(f, err, boom)
	_, err = u.Update(f.ctx, nil, func([]kvqueue.Result, kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error) {
		return []kvqueue.Guard{{Key: f.key("never"), Is: kvqueue.Present}}, []kvqueue.Write{f.put("a", "")}, nil
	})
	require.ErrorIs(f, err, kvqueue.ErrConflict)
	_, err = u.Update(f.ctx, nil, func([]kvqueue.Result, kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error) {
		return nil, []kvqueue.Write{f.put("a", "1"), f.put("a", "2")}, nil
	})
	require.ErrorAs(f, err, new(*kvqueue.InvalidError))
	_, there := f.value("a")
	assert.False(f, there)
	rev, err := u.Update(f.ctx, nil, func([]kvqueue.Result, kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error) {
		return nil, []kvqueue.Write{f.put("a", "1")}, nil
	})
	require.NoError(f, err)
	results, _ := f.read(kvqueue.Range{Begin: f.key("a")})
	assert.Equal(f, rev, results[0].Pairs[0].Rev)
}
