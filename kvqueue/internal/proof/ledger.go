package proof

import (
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A Word is what a [Worker] says of a value.
type Word string

const (
	Adds    Word = "adds"    // it asks to have it added
	Added   Word = "added"   // and was told that it was
	Refused Word = "refused" // or that it was not; else it does not know
	Wants   Word = "wants"   // it asks to have it gone
	Acked   Word = "acked"   // and was told that it is
	Commits Word = "commits" // it asks to have it gone, and added to the other queue
	Forward Word = "forward" // and was told that it was
	Kept    Word = "kept"    // or that it was not
	Fault   Word = "fault"   // not of a value: what should not have been
)

// A Ledger is what callers have asked for, and what they were told.
type Ledger struct {
	mu    sync.Mutex
	said  map[Word]map[string]int // how often
	count int
	more  chan struct{} // closed, and made anew, with each word
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{said: map[Word]map[string]int{}, more: make(chan struct{})}
}

// Note takes in what was said of values.
func (l *Ledger) Note(w Word, values ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said[w] == nil {
		l.said[w] = map[string]int{}
	}
	for _, v := range values {
		l.said[w][v]++
	}
	l.count += len(values)
	close(l.more)
	l.more = make(chan struct{})
}

// Said returns how much was said, and a channel that is closed when there is more.
func (l *Ledger) Said() (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.more
}

// Check compares what was said with what the store has shown of the queue that the workers
// have used, and of the other one, when nothing is left in the first.
func (l *Ledger) Check(t testing.TB, in, out *Auditor) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range l.said[Fault] {
		t.Errorf("a worker says: %s", text)
	}
	put, gone := in.Values()
	for v := range l.said[Adds] {
		switch {
		case put[v] == 0 && l.said[Added][v] > 0 && l.said[Wants][v] > 0 && in.Blinked():
			// It may have come and gone while the auditor saw nothing.
		case l.said[Added][v] > 0:
			assert.Equal(t, 1, put[v], "%s was added", v)
		case l.said[Refused][v] > 0:
			assert.Zero(t, put[v], "%s was refused", v)
		default:
			assert.LessOrEqual(t, put[v], 1, "%s was added once or not", v)
		}
	}
	for v, n := range put {
		assert.Equal(t, n, gone[v], "%s is gone", v)
		assert.Positive(t, l.said[Adds][v], "%s was added, and nobody has asked for it", v)
		assert.Positive(t, l.said[Wants][v], "%s went, and nobody has asked for it", v)
		assert.LessOrEqual(t, l.said[Acked][v], 1, "%s was acknowledged", v)
	}
	l.checkKeys(t, in)
	forwarded, _ := out.Values()
	for v, n := range l.said[Forward] {
		assert.Equal(t, n, forwarded[v], "%s was forwarded", v)
	}
	for v, n := range forwarded {
		assert.Equal(t, 1, n, "%s was forwarded", v)
		open := l.said[Commits][v] - l.said[Kept][v]
		assert.Positive(t, open, "%s was forwarded, and nobody knows of it", v)
	}
	if t.Failed() {
		t.Logf("%d added, of which it is not known of %d", len(put), len(l.said[Adds])-len(l.said[Added])-len(l.said[Refused]))
	}
}

// Counts returns of how many values each word was said.
func (l *Ledger) Counts() map[Word]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[Word]int{}
	for w := range maps.Keys(l.said) {
		counts[w] = len(l.said[w])
	}
	return counts
}
