package kvqueue

import (
	"fmt"
	"time"
)

// An Option changes how a queue is used by this handle. Later options win over earlier
// ones.
type Option interface{ apply(*settings) error }

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

// settings are those of one handle.
type settings struct {
	prefix    string
	ttl       time.Duration
	policy    []policyOption // what the queue is to have, if it has nothing yet
	observe   func(Report)
	owner     string
	keep      time.Duration // what was deleted is forgotten after this; 0: nobody does it
	compacted bool          // somebody does
}

// defaultPrefix is that of queues for which no other is given.
const defaultPrefix = "kvq"

// Prefix is with what the keys of all queues begin, "kvq" by default. Two prefixes share no
// key, whatever they are. It has 1024 bytes at most.
func Prefix(p string) Option {
	return option(func(s *settings) error {
		if p == "" {
			return invalid("Prefix", "it is empty: say something, or leave it out for kvq")
		}
		if len(p) > 1024 {
			return invalid("Prefix", "it has %d bytes, and 1024 is the most", len(p))
		}
		s.prefix = p
		return nil
	})
}

// TTL is how long the store waits for a sign of life before it gives what this process
// has claimed to others, 10 s by default. The contexts of what was claimed are cancelled
// before. The store may demand a least value; 24 h is the most.
func TTL(d time.Duration) Option {
	return option(func(s *settings) error {
		if d < 500*time.Millisecond || d > 24*time.Hour {
			return invalid("TTL", "%v is not from 500ms to 24h", d)
		}
		s.ttl = d
		return nil
	})
}

// Observe has f called with what happens to items that this handle has to do with. It is
// called from many goroutines, with no lock held, and must not block: while it does the
// handle stands still. A panic of it does no harm to items; [Queue.Consume] ends with it, and
// [Queue.Close] returns it.
func Observe(f func(Report)) Option {
	return option(func(s *settings) error {
		if f == nil {
			return invalid("Observe", "it is nil: leave it out")
		}
		s.observe = f
		return nil
	})
}

// Owner is the name under which this process is seen by others, in place of its host and
// number.
func Owner(name string) Option {
	return option(func(s *settings) error {
		if name == "" || len(name) > 256 {
			return invalid("Owner", "a name has from 1 to 256 bytes, this one has %d", len(name))
		}
		s.owner = name
		return nil
	})
}

// Compact has this handle tell the store, again and again, to forget what was deleted or
// overwritten before the time that keep says: of the whole store, not only of the queue.
// [Open] demands this or [CompactedElsewhere] where a store keeps everything until it is
// told, as etcd does: a queue would fill it.
func Compact(keep time.Duration) Option {
	return option(func(s *settings) error {
		if keep < time.Second {
			return invalid("Compact", "%v is less than 1s: watches of other programs need some time", keep)
		}
		s.keep, s.compacted = keep, true
		return nil
	})
}

// CompactedElsewhere says that the store is compacted without this handle: by its own
// settings, as with etcd's --auto-compaction-retention, or by another handle.
func CompactedElsewhere() Option {
	return option(func(s *settings) error { s.compacted = true; return nil })
}

// An InvalidError says what is wrong with a request, and what to do. Nothing was changed.
type InvalidError struct {
	What string // the argument
	Why  string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("kvqueue: %s: %s", e.What, e.Why) }

func invalid(what, format string, args ...any) error {
	return &InvalidError{what, fmt.Sprintf(format, args...)}
}
