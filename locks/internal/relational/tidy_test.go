package relational

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

// slow is a database in which one thing takes long. Only what a tidier does is there.
type slow struct {
	Backend
	takes time.Duration
	fails bool
	there map[locks.Name]*book.Resource
	steps int
}

func (s *slow) Due(_ context.Context, _, _ int64, most int) (names []locks.Name, err error) {
	for name := range s.there {
		if len(names) < most {
			names = append(names, name)
		}
	}
	return names, nil
}

func (s *slow) Steps(ctx context.Context, names []locks.Name, f func(now int64, rs map[locks.Name]*book.Resource)) error {
	t := time.NewTimer(s.takes)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.steps++; s.fails {
		return errors.New("it is away")
	}
	rs := map[locks.Name]*book.Resource{}
	for _, name := range names {
		rs[name] = s.there[name]
	}
	f(time.Hour.Microseconds(), rs)
	for name, r := range rs {
		if !r.Exists {
			delete(s.there, name)
		}
	}
	return nil
}

func (s *slow) add(n int) {
	for range n {
		name := locks.Name{Key: fmt.Sprint("k", len(s.there))}
		s.there[name] = &book.Resource{Name: name, Exists: true, Kind: locks.Mutex, Retention: 1, Due: 1}
	}
}

func TestASlowDatabaseHasAsManyRecordsGoAsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &slow{takes: 10 * time.Second, there: map[locks.Name]*book.Resource{}}
		s := &Store{Backend: db}
		db.add(500)
		began := time.Now()
		for range 250 {
			s.made(7, 1)
		}
		require.Equal(t, began, time.Now(), "who makes a record waits for nothing")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, db.there)
		require.LessOrEqual(t, db.steps, 6, "many go in one transaction")
		s.StopTidying()
	})
}

func TestRecordsThatCouldNotGoDoSoWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &slow{fails: true, there: map[locks.Name]*book.Resource{}}
		s := &Store{Backend: db}
		db.add(20)
		for range 9 {
			s.made(7, 1)
			synctest.Wait()
		}
		require.Len(t, db.there, 20)
		require.Equal(t, 9, db.steps, "it is not tried again and again")
		db.fails = false
		s.made(7, 1)
		synctest.Wait()
		require.Empty(t, db.there)
		s.StopTidying()
	})
}

func TestStopTidyingEndsWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &slow{takes: tidyTime - time.Second, there: map[locks.Name]*book.Resource{}}
		s := &Store{Backend: db}
		db.add(1)
		s.made(7, 1)
		synctest.Wait()
		began := time.Now()
		s.StopTidying()
		require.Equal(t, began, time.Now())
		s.made(7, 1)
		synctest.Wait()
		require.Len(t, db.there, 1)
	})
}
