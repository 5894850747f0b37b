package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Kind says what an [Entry] of a history is about.
type Kind string

const (
	Began    Kind = "began"    // a client is going to ask for something
	Ended    Kind = "ended"    // and was told that it is so
	Void     Kind = "void"     // or that it is not, and will not be; else it is not known
	Claimed  Kind = "claimed"  // a client was handed an item
	Lapsed   Kind = "lapsed"   // the context of a claim has ended, as the claim was lost
	Sent     Kind = "sent"     // a transaction that claims items is sent to the store
	Answered Kind = "answered" // and was done
	Undone   Kind = "undone"   // or was not; else it is not known
	Begun    Kind = "begun"    // a handle has begun a session: those before have ended
	Over     Kind = "over"     // a handle is closed, or its process was killed
	Idle     Kind = "idle"     // a process adds no more
)

// The requests of a client.
const (
	Enqueue = "enqueue" // of a value with an id, which another value may have
	Ack     = "ack"
	Fail    = "fail"    // Nack with a reason, or a handler that fails
	Return  = "return"  // Nack without one
	Requeue = "requeue" // of a dead letter
	Empty   = "empty"   // nothing is in the queue, neither ready nor claimed nor dead
)

// An Entry of a history is what a client asks for, what it is told, or what one of the stores of
// the handles has seen.
type Entry struct {
	Kind    Kind
	ID      int64   // of what was begun, or the transaction: the time at which that was
	What    string  `json:",omitempty"`
	Who     string  `json:",omitempty"` // the handle
	Value   string  `json:",omitempty"` // of the item
	Key     string  `json:",omitempty"` // of the item
	Attempt int     `json:",omitempty"`
	Fence   int64   `json:",omitempty"` // of the claim
	At      int64   `json:",omitempty"` // the end; of Sent when its handle has looked what there is to claim
	Session string  `json:",omitempty"`
	Claims  []Sight `json:",omitempty"` // of Sent
}

// A Sight is one claim of a transaction.
type Sight struct{ Session, Key string }

// A Scribe writes a history down, on a clock that all who take part share.
type Scribe interface {
	Tick() int64 // no two are the same
	Note(e Entry)
}

// A History is what several clients have done with a queue. It is a [Scribe] for those in this
// process.
type History struct {
	// Exact says that time stands still while anything can be done, as in testing/synctest: the
	// end of a context is noted before the store lets another have the item.
	Exact bool
	// Steady says that no session ends before its handle is closed.
	Steady bool

	clock atomic.Int64
	dice  *Dice

	mu      sync.Mutex
	entries []Entry
	more    chan struct{}      // closed, and made anew, with each entry
	given   string             // why the history was given up; empty: it was not
	stop    context.CancelFunc // of those who make the history; nil: nobody has to be told
}

// A history is given up when it has become longer than any that ends: a broken queue may hand out
// an item for ever, or keep one that nobody finds. In fake time neither would ever end.
const (
	mostEntries = 20_000 // those that end have some hundreds
	mostLooks   = 60_000 // for what is left, one after the other; those that end need some hundreds
)

// NewHistory returns an empty history.
func NewHistory(seed uint64) *History {
	return &History{dice: NewDice(seed), more: make(chan struct{})}
}

// Tick returns the time.
func (h *History) Tick() int64 { return h.clock.Add(1) }

// Note adds an entry.
func (h *History) Note(e Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, e)
	close(h.more)
	h.more = make(chan struct{})
	if len(h.entries) == mostEntries {
		h.giveUpLocked(fmt.Sprintf("the history does not end: it has %d entries", mostEntries))
	}
}

// bounded returns a context that ends when the history is given up, too.
func (h *History) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop = stop; h.given != "" {
		stop()
	}
	return ctx, stop
}

// giveUp ends the history, which has a fault then.
func (h *History) giveUp(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.giveUpLocked(why)
}

func (h *History) giveUpLocked(why string) {
	if h.given != "" {
		return
	}
	h.given = why
	if h.stop != nil {
		h.stop()
	}
}

// Steps waits until clients were told so much.
func (h *History) Steps(ctx context.Context, n int) error {
	return h.until(ctx, func() bool {
		told := 0
		for _, e := range h.entries {
			if e.Kind == Ended || e.Kind == Claimed {
				told++
			}
		}
		return told >= n
	})
}

// until waits until something holds of the entries. so is called with mu held.
func (h *History) until(ctx context.Context, so func() bool) error {
	for {
		h.mu.Lock()
		is, more := so(), h.more
		h.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Verdict looks for an order of all steps, each between its call and its return, in which
// the queue is one. Nothing explains a history with faults, or one that was given up.
func (h *History) Verdict() (result porcupine.CheckResult, faults []string) {
	h.mu.Lock()
	given := h.given
	h.mu.Unlock()
	if given != "" {
		return porcupine.Illegal, []string{given}
	}
	steps, items, faults := h.steps()
	if len(faults) > 0 {
		return porcupine.Illegal, faults
	}
	return porcupine.CheckOperationsTimeout(model(items), steps, 20*time.Second), nil
}

// Check has a test fail if there is no such order. One that is not found within twenty seconds is not
// missed.
func (h *History) Check(t testing.TB) {
	t.Helper()
	begin := time.Now()
	result, faults := h.Verdict()
	steps, _, _ := h.steps()
	switch result {
	case porcupine.Ok:
		t.Logf("an order of %d steps was found in %v: %s", len(steps), time.Since(begin), h.counts())
		return
	case porcupine.Unknown:
		t.Logf("no order of %d steps was found in time", len(steps))
		return
	}
	slices.SortFunc(steps, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, o := range steps {
		fmt.Fprintf(&b, "%d-%d %v\n", o.Call, o.Return, o.Input)
	}
	t.Errorf("no order of these steps explains the answers: %v\n%s", faults, b.String())
}

// counts says how much of everything there is.
func (h *History) counts() string {
	n := map[string]int{}
	steps, _, _ := h.steps()
	for _, o := range steps {
		m := o.Input.(move)
		if n[m.what]++; !m.sure {
			n["open "+m.what]++
		}
	}
	return fmt.Sprint(n)
}
