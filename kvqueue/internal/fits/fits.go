// Package fits refuses transactions that a cluster would refuse, for the stores of one machine: a
// program that works on one of them works on many machines.
package fits

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// Limits are those of etcd.
var Limits = kvqueue.Limits{Guards: 128, Writes: 128, Bytes: 3 << 19, MinTTL: 500 * time.Millisecond}

// maxKey is the most bytes of a key.
const maxKey = 16 << 10

// Check refuses a transaction that is too large, or makes no sense.
func Check(guards []kvqueue.Guard, writes []kvqueue.Write) error {
	size, written := 0, make(map[string]bool, len(writes))
	for _, w := range writes {
		size += len(w.Key) + len(w.Value)
		switch {
		case len(w.Key) > maxKey:
			return invalid("key", "it has %d bytes, and %d is the most", len(w.Key), maxKey)
		case written[string(w.Key)]:
			return invalid("transaction", "the key %q is written twice", w.Key)
		}
		written[string(w.Key)] = true
	}
	if len(guards) > Limits.Guards || len(writes) > Limits.Writes || size > Limits.Bytes {
		return invalid("transaction", "%d guards, %d writes and %d bytes are more than %+v", len(guards), len(writes), size, Limits)
	}
	for _, g := range guards {
		if g.End != nil && g.Is != kvqueue.Absent {
			return invalid("guard", "of a range it can only be demanded that it is empty")
		}
	}
	return nil
}

func invalid(what, format string, args ...any) error {
	return &kvqueue.InvalidError{What: what, Why: fmt.Sprintf(format, args...)}
}
