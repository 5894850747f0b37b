package book_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

const second = int64(time.Second / time.Microsecond)

func mutex(id string) locks.Request {
	return locks.Request{ID: id, Version: "v" + id, Kind: locks.Mutex, Lease: 15 * time.Second, Wait: true}
}

func TestGrantsFollowTickets(t *testing.T) {
	r := &book.Resource{}
	now := 100 * second
	a := r.Acquire(now, "p", []locks.Request{mutex("a")}).Answers[0]
	require.True(t, a.Granted)
	require.Equal(t, now, a.Grant.Fence)
	require.False(t, r.Acquire(now, "p", []locks.Request{mutex("b")}).Answers[0].Granted)
	c := r.Acquire(now, "q", []locks.Request{mutex("c")}).Answers[0]
	require.Equal(t, 1, c.Place)
	require.Empty(t, r.Wake(now))

	require.True(t, r.Release(now, locks.Ref{ID: "a"}, nil))
	require.Equal(t, []string{"p"}, r.Wake(now))
	require.False(t, r.Acquire(now, "q", []locks.Request{mutex("c")}).Answers[0].Granted, "b is first")
	b := r.Acquire(now, "p", []locks.Request{mutex("b")}).Answers[0]
	require.True(t, b.Granted)
	require.Equal(t, now+1, b.Grant.Fence)
}

func TestAnExpiredLeaseIsGrantedToTheNextWithAGreaterFence(t *testing.T) {
	r := &book.Resource{}
	now := 100 * second
	r.Acquire(now, "p", []locks.Request{mutex("a")})
	turn := r.Acquire(now+14*second, "p", []locks.Request{mutex("b")})
	require.False(t, turn.Answers[0].Granted)
	require.Equal(t, time.UnixMicro(now+15*second), turn.Next)
	turn = r.Acquire(now+15*second, "p", []locks.Request{mutex("b")})
	require.True(t, turn.Answers[0].Granted)
	require.Equal(t, locks.NotYours, r.Renew(now+16*second, &locks.Renewal{Ref: locks.Ref{ID: "a"}, Lease: time.Second}).Verdict)
}

// TestHoldersAreInTheOrderOfTheirFencesHoweverFarApart: on a machine of 32 bits, too.
func TestHoldersAreInTheOrderOfTheirFencesHoweverFarApart(t *testing.T) {
	r := &book.Resource{}
	var want []int64
	for i := range int64(4) {
		q := locks.Request{ID: string(rune('a' + i)), Kind: locks.Semaphore, Size: 4, Permits: 1, Lease: 24 * time.Hour}
		want = append(want, r.Acquire((100+3000*i)*second, "p", []locks.Request{q}).Answers[0].Grant.Fence)
	}
	record, err := r.Record(10_000 * second)
	require.NoError(t, err)
	var got []int64
	for _, h := range record.Holders {
		got = append(got, h.Fence)
	}
	require.Equal(t, want, got)
}

// TestARequestThatWasJustKeptAliveIsLeftAsItIs: then a store has nothing to write.
func TestARequestThatWasJustKeptAliveIsLeftAsItIs(t *testing.T) {
	r := &book.Resource{}
	now := 100 * second
	r.Acquire(now, "p", []locks.Request{mutex("a"), mutex("b")})
	waiter := r.Entries[1]
	r.Acquire(now+4*second/10, "p", []locks.Request{mutex("b")})
	require.Equal(t, waiter, r.Entries[1])
	other := mutex("b")
	other.Owner = "somebody"
	r.Acquire(now+4*second/10, "p", []locks.Request{other})
	require.Equal(t, "somebody", r.Entries[1].Owner)
	require.Equal(t, waiter.Expires+4*second/10, r.Entries[1].Expires)
	r.Acquire(now+9*second/10, "p", []locks.Request{other})
	require.Equal(t, waiter.Expires+9*second/10, r.Entries[1].Expires, "it was kept alive half a second ago")
}

// TestARequestOfAClockThatWasSetBackIsWrittenAnew: else it would keep its place for an hour when its process has gone.
func TestARequestOfAClockThatWasSetBackIsWrittenAnew(t *testing.T) {
	r := &book.Resource{}
	now, hour := 100*second, 3600*second
	holder := mutex("a")
	holder.Lease = 24 * time.Hour
	r.Acquire(now, "p", []locks.Request{holder})
	r.Acquire(now+hour, "p", []locks.Request{mutex("b")})
	r.Acquire(now+second, "p", []locks.Request{mutex("b")})
	require.Equal(t, now+second+int64(locks.WaiterLife/time.Microsecond), r.Entries[1].Expires)
}
