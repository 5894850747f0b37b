// Package fence is how what is written to under a lock refuses a writer that has lost it.
//
// No lock over a network can stop a write that was begun while the lock was held and that
// arrives afterwards: the process may be stopped between its last look at the clock and the
// write. The resource can. Each grant of a lock has a token that is greater than those of all
// grants before; the writer sends it along, and the resource refuses a token that is less
// than the greatest it has seen. Fencing is due to Gray and Cheriton's leases and to Chubby's
// sequencers; the word is from Kleppmann (2016).
//
// # Choosing
//
//   - The resource is in the database of the locks: [Same], which checks the lease itself in
//     the user's own transaction. It is the only one that excludes for certain.
//   - A SQL database: [SQL], a condition for the UPDATE.
//   - A Redis: [Redis], a script.
//   - A service behind HTTP: [Transport] in the client, [Require] in the service.
//   - Memory of the process that owns the resource: [Register].
//
// # What a token can and cannot tell
//
// Two holders of a semaphore at once are legitimate, and so are tokens that come out of
// order: a resource keeps the greatest token per key *and slot*, see [locks.Hold.Slot].
// Readers of a read-write lock write nothing, so they need no token.
//
// A fence refuses what is older than what it has seen. It does not know of a grant that has
// not written yet. After a lock was deleted, or its store flushed, tokens are only good if
// the clock of the store is not behind the last one.
package fence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ambit-go/ambit/locks"
)

// ErrStale says that a token is less than one that was seen. The error is a [*StaleError].
var ErrStale = errors.New("fence: the lock was granted to somebody else since")

// ErrMissing says that there is no token where one is required.
var ErrMissing = errors.New("fence: there is no token")

// A StaleError says that a writer has lost its lock. It matches [ErrStale].
type StaleError struct {
	Key     string
	Slot    int
	Token   int64
	Highest int64 // the greatest that was seen; 0: not known
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: token %d of %.200q, slot %d, is stale: %d was seen", e.Token, e.Key, e.Slot, e.Highest)
}

func (e *StaleError) Is(target error) bool { return target == ErrStale }

// A Token is what a writer sends along.
type Token struct {
	Key   string
	Slot  int
	Value int64
}

// Of returns the token of a lock.
func Of(h *locks.Hold) Token { return Token{h.Key(), h.Slot(), h.Token()} }

// A Register keeps the greatest token of each key and slot, in memory: for a process that
// owns a resource. The zero Register is ready. It keeps an entry for each key and slot for
// ever, unless it is [Register.Forget]. Any number of goroutines may use one.
type Register struct {
	mu      sync.Mutex
	highest map[place]int64
}

type place struct {
	key  string
	slot int
}

// Check notes a token, and returns a [*StaleError] if a greater one was seen. The guarded write is done
// after Check by somebody who keeps others from doing so at the same time;
// [Register.Do] does both.
func (r *Register) Check(t Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkLocked(t)
}

func (r *Register) checkLocked(t Token) error {
	at := place{t.Key, t.Slot}
	if seen := r.highest[at]; t.Value < seen {
		return &StaleError{t.Key, t.Slot, t.Value, seen}
	}
	if r.highest == nil {
		r.highest = map[place]int64{}
	}
	r.highest[at] = t.Value
	return nil
}

// Do calls write if the token is good. No other Check and no other Do happens meanwhile, so
// a write of an older token never comes after that of a newer one. write is short.
func (r *Register) Do(t Token, write func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkLocked(t); err != nil {
		return err
	}
	return write()
}

// Seen returns the greatest tokens that were seen, in the order of keys and slots.
func (r *Register) Seen() []Token {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Token, 0, len(r.highest))
	for p, v := range r.highest {
		all = append(all, Token{p.key, p.slot, v})
	}
	slices.SortFunc(all, func(a, b Token) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Slot, b.Slot)) })
	return all
}

// Forget forgets all about a key. A writer that was late before is not noticed any more.
func (r *Register) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.highest {
		if p.key == key {
			delete(r.highest, p)
		}
	}
}
