package etcdstore

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// processes are stores on one server, each as that of a process, whose requests and answers to
// watches are counted together.
func processes(t *testing.T, n int) (all []*Store, requests, reads, answers *atomic.Int64) {
	s, _ := start(t)
	requests, reads, answers = new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)
	for i := range n {
		if all = append(all, s); i > 0 {
			all[i] = s.another(t)
		}
		c := count(all[i])
		c.txns, c.reads = requests, reads
		all[i].watches.watcher = heard{all[i].watches.watcher, answers}
	}
	return all, requests, reads, answers
}

// A turn is a release, the hint to the next, its grant, and the request of the one that has released.
func TestATurnCostsTheSameHoweverManyWait(t *testing.T) {
	for _, n := range []int{4, 12} {
		all, txns, reads, answers := processes(t, n)
		hints := make([]<-chan struct{}, n)
		for i, s := range all {
			listened, stop := s.Listen(name)
			defer stop()
			<-listened // it watches by now
			hints[i] = listened
		}
		for clean := false; !clean; { // a request is forgotten after a while, on a busy machine
			clean = takeTurns(t, all, hints, txns, reads, answers)
		}
	}
}

// takeTurns has each of some processes have the lock three times, in turns, and looks at what the last
// turns have cost. It is false if a request was forgotten before its turn.
func takeTurns(t *testing.T, all []*Store, hints []<-chan struct{}, txns, reads, answers *atomic.Int64) (clean bool) {
	round := rand.Text()
	id := func(i int) string { return fmt.Sprint(round, "-", i) }
	defer func() {
		for i, s := range all {
			_, err := s.Release(t.Context(), name, locks.Ref{ID: id(i)}, nil)
			require.NoError(t, err)
		}
	}()
	for i, s := range all {
		turn, err := s.Acquire(t.Context(), name, []locks.Request{request(id(i), time.Minute)})
		require.NoError(t, err)
		if turn.Answers[0].Granted != (i == 0) {
			return false
		}
	}
	var counted [3]int64
	for n := range 3 * len(all) {
		if n == 2*len(all) {
			counted = [3]int64{txns.Load(), reads.Load(), answers.Load()}
		}
		i, next := n%len(all), (n+1)%len(all)
		for len(hints[next]) > 0 {
			<-hints[next]
		}
		all[i].releases(t, id(i))
		select {
		case <-hints[next]:
		case <-time.After(locks.WaiterLife):
			return false
		}
		turn, err := all[next].Acquire(t.Context(), name, []locks.Request{request(id(next), time.Minute)})
		require.NoError(t, err)
		if !turn.Answers[0].Granted {
			return false
		}
		turn, err = all[i].Acquire(t.Context(), name, []locks.Request{request(id(i), time.Minute)})
		require.NoError(t, err)
		if turn.Answers[0].Granted || turn.Answers[0].Place != len(all)-2 {
			return false
		}
	}
	n := int64(len(all))
	require.LessOrEqual(t, txns.Load()-counted[0], 3*n, "it is given back, granted, and asked for")
	require.LessOrEqual(t, reads.Load()-counted[1], 2*n)
	require.LessOrEqual(t, answers.Load()-counted[2], 4*n, "the process that is the next hears of it, and each of its own requests")
	return true
}

// TestManyThatComeAtATimeAreOneTransactionEach: none of them spoils that of another.
func TestManyThatComeAtATimeAreOneTransactionEach(t *testing.T) {
	all, txns, _, _ := processes(t, 8)
	all[0].granted(t, request("holder", time.Minute))
	before := txns.Load()
	var wg sync.WaitGroup
	for i, s := range all[1:] {
		wg.Go(func() { s.waits(t, request(fmt.Sprint(i), time.Minute)) })
	}
	wg.Wait()
	require.Equal(t, int64(len(all)-1), txns.Load()-before)
}

// told says whether a request that waits was written again, by which its process is told. It is false
// for there if the request was forgotten, as on a busy machine.
func (s *Store) told(t *testing.T, id string) (told, there bool) {
	t.Helper()
	answer, err := s.client.Get(t.Context(), s.ofName(name)+ofProcess(s.id)+id)
	require.NoError(t, err)
	if len(answer.Kvs) == 0 {
		return false, false
	}
	return answer.Kvs[0].Version > 1, true
}

// TestARequestThatComesWhileTheLockIsGivenBackIsTold: the release has not seen it.
func TestARequestThatComesWhileTheLockIsGivenBackIsTold(t *testing.T) {
	s, _ := start(t)
	other := s.another(t)
	c := count(s)
	for _, brief := range []bool{false, true} {
		for _, guess := range []bool{true, false} {
			for told, there := false, false; !there; {
				id := rand.Text()
				holder, comes := request("holder"+id, time.Minute), request("comes"+id, time.Minute)
				holder.DeleteOnRelease, holder.Brief = brief, brief
				s.granted(t, holder)
				if !guess {
					s.guesses.take(name)
				}
				c.before = func() { other.waits(t, comes) }
				s.releases(t, holder.ID)
				if told, there = other.told(t, comes.ID); there {
					require.True(t, told, "%v, %v", brief, guess)
				}
				other.granted(t, comes)
				other.releases(t, comes.ID)
			}
		}
	}
}

// TestARequestThatComesWhileTheLockIsGrantedIsTold: neither the grant has seen it, nor the release
// that begins with what the grant has left.
func TestARequestThatComesWhileTheLockIsGrantedIsTold(t *testing.T) {
	s, _ := start(t)
	before, other := s.another(t), s.another(t)
	c := count(s)
	for told, there := false, false; !there; {
		id := rand.Text()
		before.granted(t, request("before"+id, time.Minute))
		s.waits(t, request("next"+id, time.Minute))
		before.releases(t, "before"+id)
		c.before = func() { other.waits(t, request("comes"+id, time.Minute)) }
		s.granted(t, request("next"+id, time.Minute))
		s.releases(t, "next"+id)
		if told, there = other.told(t, "comes"+id); there {
			require.True(t, told)
		}
		other.granted(t, request("comes"+id, time.Minute))
		other.releases(t, "comes"+id)
	}
}

// TestARequestThatComesWhileALaterOneIsGrantedIsNotPassed: two permits of three are held, the one
// that comes wants two, and the later one wants the last.
func TestARequestThatComesWhileALaterOneIsGrantedIsNotPassed(t *testing.T) {
	s, _ := start(t)
	other := s.another(t)
	c := count(s)
	permits := func(id string, n int) locks.Request {
		q := request(id, time.Minute)
		q.Kind, q.Size, q.Permits = locks.Semaphore, 3, n
		return q
	}
	s.granted(t, permits("holder", 2))
	s.guesses.drop()
	c.before = func() { other.waits(t, permits("comes", 2)) }
	s.waits(t, permits("later", 1))
}

// TestTheFirstWhoWaitSeeALeaseEnd though nobody has done a step.
func TestTheFirstWhoWaitSeeALeaseEnd(t *testing.T) {
	s, _ := start(t)
	other := s.another(t)
	hints, stop := other.Listen(name)
	defer stop()
	<-hints        // it watches by now
	for range 10 { // a request may be forgotten before its hint comes, on a busy machine
		id := rand.Text()
		s.granted(t, request("holder"+id, time.Minute))
		other.waits(t, request("waits"+id, time.Minute))
		_, err := s.kv.Delete(t.Context(), s.ofName(name)+holdKey+"holder"+id)
		require.NoError(t, err)
		hinted := false
		select {
		case <-hints:
			hinted = true
		case <-time.After(locks.WaiterLife):
		}
		other.granted(t, request("waits"+id, time.Minute))
		other.releases(t, "waits"+id)
		if hinted {
			return
		}
	}
	require.Fail(t, "no hint came")
}
