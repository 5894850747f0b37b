package local

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A fakeTree is a tree whose updates wait, and can be made to fail.
type fakeTree struct {
	keys    map[string][]byte
	updates int
	hold    chan struct{} // nil: they do not wait
	entered chan struct{} // one has begun
	fail    error
}

func (f *fakeTree) View(g func(Reader) error) error { return g(f) }

func (f *fakeTree) Update(g func(Writer) error) error {
	f.updates++
	if f.hold != nil {
		f.entered <- struct{}{}
		<-f.hold
	}
	old := map[string][]byte{}
	for k, v := range f.keys {
		old[k] = v
	}
	err := g(f)
	if err == nil {
		err = f.fail
	}
	if err != nil {
		f.keys = old
	}
	return err
}

func (f *fakeTree) Get(key []byte) []byte                              { return f.keys[string(key)] }
func (f *fakeTree) Put(key, value []byte) error                        { f.keys[string(key)] = value; return nil }
func (f *fakeTree) Delete(key []byte) error                            { delete(f.keys, string(key)); return nil }
func (f *fakeTree) Ascend(_, _ []byte, _ func(key, value []byte) bool) {}

func TestCommitsThatComeAtTheSameTimeAreOneTransactionOfTheTree(t *testing.T) {
	const n = 20
	for name, fail := range map[string]error{"": nil, "the tree fails": errors.New("boom")} {
		t.Run(name, func(t *testing.T) {
			tree := &fakeTree{keys: map[string][]byte{}}
			s, err := New(tree, kvqueue.Limits{Guards: 9, Writes: 9, Bytes: 999})
			require.NoError(t, err)
			defer s.Close()
			tree.hold, tree.entered, tree.updates = make(chan struct{}), make(chan struct{}), 0
			commit := func(key string, is kvqueue.Condition) (kvqueue.Rev, error) {
				return s.Commit(t.Context(), []kvqueue.Guard{{Key: []byte(key), Is: is}}, []kvqueue.Write{{Key: []byte(key)}})
			}
			first := make(chan error)
			waiting := func() int { s.waiting.mu.Lock(); defer s.waiting.mu.Unlock(); return len(s.waiting.changes) }
			go func() { _, err := commit("first", kvqueue.Absent); first <- err }()
			<-tree.entered // it has the tree, and waits
			revs, errs := make([]kvqueue.Rev, n), make([]error, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { revs[i], errs[i] = commit(fmt.Sprint("k", i), kvqueue.Condition(1+i%2)) })
			}
			require.Eventually(t, func() bool { return waiting() == n }, time.Minute, time.Millisecond)
			before := s.rev
			tree.hold <- struct{}{}
			require.NoError(t, <-first)
			<-tree.entered
			tree.fail = fail
			tree.hold <- struct{}{}
			all.Wait()
			assert.Equal(t, 2, tree.updates)
			seen := map[kvqueue.Rev]bool{}
			for i := range n {
				switch {
				case fail != nil:
					require.ErrorIs(t, errs[i], fail)
				case i%2 == 1: // wants a key that is not there
					require.ErrorIs(t, errs[i], kvqueue.ErrConflict)
				default:
					require.NoError(t, errs[i])
					assert.False(t, seen[revs[i]], "each has a revision of its own")
					seen[revs[i]] = true
				}
			}
			want := before + 1
			if fail == nil {
				want += n / 2
			}
			assert.Equal(t, want, s.rev)
		})
	}
}
