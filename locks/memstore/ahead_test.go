package memstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

func TestATokenFromTheFutureKeepsNoLeaseFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Duration(0)
		s := memstore.WithClock(func() time.Time { return time.Now().Add(ahead) })
		f := lockstest.NewFixture(t, func(testing.TB) locks.Store { return s })
		f.Ahead(func(name locks.Name, token int64) {
			other := name
			for i := 0; other == name || book.Bucket(other) != book.Bucket(name); i++ {
				other.Key = fmt.Sprint("other ", i)
			}
			ahead = time.Until(time.UnixMicro(token))
			q := locks.Request{ID: "a", Version: "v", Owner: "o", Kind: locks.Mutex, Lease: time.Second, DeleteOnRelease: true}
			_, err := s.Acquire(t.Context(), other, []locks.Request{q})
			require.NoError(t, err)
			_, err = s.Release(t.Context(), other, locks.Ref{ID: "a"}, nil)
			require.NoError(t, err)
			ahead = 0
		})
	})
}

func TestARequestOfAClockThatWasSetBackIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Duration(0)
		s := memstore.WithClock(func() time.Time { return time.Now().Add(ahead) })
		lockstest.NewFixture(t, func(testing.TB) locks.Store { return s }).SetBack(func(by time.Duration) { ahead = by })
	})
}
