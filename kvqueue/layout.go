package kvqueue

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Key is the place of an item in its queue. Keys are in the order of the queue, and no
// two items ever have the same.
type Key [keySize]byte

// A key is the revision of the store that its producer saw, so that an item that was
// enqueued after another had been is behind it; then the producer's own random number,
// so that no two producers write one key; then the place in the producer's transaction.
const keySize = 20

func newKey(hint uint64, producer uint64, seq uint32) (k Key) {
	binary.BigEndian.PutUint64(k[:], hint)
	binary.BigEndian.PutUint64(k[8:], producer)
	binary.BigEndian.PutUint32(k[16:], seq)
	return k
}

func (k Key) hint() uint64     { return binary.BigEndian.Uint64(k[:]) }
func (k Key) producer() uint64 { return binary.BigEndian.Uint64(k[8:]) }

// String returns the key in hexadecimal digits; [ParseKey] reads it.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey reads what [Key.String] has written.
func ParseKey(text string) (k Key, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != keySize {
		return k, fmt.Errorf("kvqueue: %q is no key of an item: those have %d hexadecimal digits", text, 2*keySize)
	}
	return Key(b), nil
}

// random returns a number that no other process has.
func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// A layout knows the keys of one queue in the store. All begin with the prefix and the
// name, so escaped that they hold no slash: no queue's keys are another's.
//
//	d/<key>            the payload, written once
//	q/<key>            a ready item: its record
//	w/<session>/<key>  a claimed item: its record; the fence is the revision of this key
//	x/<key>            a dead item: its record and its last error
//	r/<session>        how many claims the session wants to have, and how many each of its calls; leased
//	l/<session>        the owner, while the session lives; leased
//	s/<session>        the owner, until its items were given back
//	n/<session>        the producer's last transaction, and a bell for those who wait; leased
//	g, m               of groups: see groups.go
//	h                  the head: no ready item has a smaller hint, or ever will
//	i/<id>             the key of the item that has the id; the id is escaped
//	j/<key>            the id of the item, until i/<id> goes
//	t                  the marks by which the age of ids is told; none: there never was an id
//	u                  vanishes when the next mark is due; leased
//	p                  the policy, if one was chosen
//	v                  the version of the layout; none: 1
type layout struct{ root string }

func newLayout(prefix, name string) layout { return layout{escape(prefix) + "/" + escape(name) + "/"} }

// escape keeps letters, digits and _.- of a name, and writes each other byte as %XX.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_.-", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func (l layout) head() []byte   { return []byte(l.root + "h") }
func (l layout) policy() []byte { return []byte(l.root + "p") }

func (l layout) of(kind string, k Key) []byte { return append([]byte(l.root+kind+"/"), k[:]...) }
func (l layout) data(k Key) []byte            { return l.of("d", k) }
func (l layout) ready(k Key) []byte           { return l.of("q", k) }
func (l layout) dead(k Key) []byte            { return l.of("x", k) }

// readyFrom is where the ready items with a hint of at least this begin.
func (l layout) from(kind string, hint uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(l.root+kind+"/"), hint)
}

func (l layout) session(kind string, id int64) []byte {
	return fmt.Appendf(nil, "%s%s/%016x", l.root, kind, uint64(id))
}

func (l layout) claims(id int64) []byte { return append(l.session("w", id), '/') }

func (l layout) claim(id int64, k Key) []byte { return append(l.claims(id), k[:]...) }

func (l layout) all(kind string) []byte { return []byte(l.root + kind + "/") }

// keyOf returns the key of an item, with which a key of the store ends.
func keyOf(key []byte) Key { return Key(key[len(key)-keySize:]) }

// itemIn returns the key of an item that is in a key of the store of this kind; false if
// this package did not write that.
func (l layout) itemIn(kind string, key []byte) (k Key, ok bool) {
	if len(key) != len(l.all(kind))+keySize {
		return k, false
	}
	return keyOf(key), true
}

// sessionIn returns the session that is in a key of the store of this kind; false if this
// package did not write that.
func (l layout) sessionIn(kind string, key []byte) (id int64, ok bool) {
	digits := key[min(len(l.all(kind)), len(key)):]
	u, err := strconv.ParseUint(string(digits), 16, 64)
	return int64(u), err == nil && len(digits) == 16
}

// knows reports whether a key of the store under the root of l looks like one that this package
// writes.
func (l layout) knows(key []byte) bool {
	kind, rest, ok := strings.Cut(string(key[len(l.root):]), "/")
	switch kind {
	case "h", "p", "v", "t", "u":
		return !ok
	case "d", "q", "x", "j":
		return ok && len(rest) == keySize
	case "i":
		is := isEscaped(rest)
		return ok && is
	case "l", "s", "r":
		_, is := l.sessionIn(kind, key)
		return is
	case "g":
		_, _, _, is := l.groupIn(key)
		return is
	case "m":
		_, is := l.markedIn(key)
		return ok && is
	case "n":
		_, is := l.sessionIn(kind, key[:min(len(l.all(kind))+16, len(key))])
		return is && (len(rest) == 16 || rest[16:] == "b") || rest == "c"
	case "w":
		if len(rest) != 16+1+keySize {
			return false
		}
		_, is := l.sessionIn(kind, key[:len(key)-keySize-1])
		return is && rest[16] == '/'
	default:
		return false
	}
}

// foreign is the error of a key that this package did not write.
func foreign(key []byte) error {
	return fmt.Errorf("kvqueue: the store holds a key that this package did not write: %q", key)
}

// after returns the first key behind all that begin with the prefix.
func after(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// A record is what the store knows of an item beside its payload.
type record struct {
	failures uint64 // runs that ended with an error
	crashes  uint64 // runs whose process went away
	size     uint64 // of the payload, in bytes
	added    uint64 // when, in milliseconds since 1970 by the clock of its producer; 0: that is not known
	group    string // as the keys have it; empty: none. It stands in the key of a ready item, and behind the record of any other
}

// newRecord is that of an item that is added now.
func newRecord(item []byte, group string) record {
	return record{size: uint64(len(item)), added: uint64(max(time.Now().UnixMilli(), 0)), group: group}
}

func (r record) attempts() uint64 { return r.failures + r.crashes }

// addedAt is when the item was added; zero: that is not known.
func (r record) addedAt() (t time.Time) {
	if r.added > 0 {
		t = time.UnixMilli(int64(r.added))
	}
	return t
}

// The time stands at the end, in addedSize bytes of which the last is addedMark: neither numbers nor texts end so,
// and programs that know nothing of times leave it out.
const (
	addedSize = 7
	addedMark = 0xff
)

func (r record) encode(more ...byte) []byte {
	b := binary.AppendUvarint(nil, r.failures)
	b = binary.AppendUvarint(b, r.crashes)
	b = binary.AppendUvarint(b, r.size)
	if b = append(b, more...); r.added > 0 {
		var ms [8]byte
		binary.BigEndian.PutUint64(ms[:], r.added)
		b = append(append(b, ms[9-addedSize:]...), addedMark)
	}
	return b
}

// decodeRecord returns a record, and what stands behind it.
func decodeRecord(b []byte) (r record, more []byte, err error) {
	if at := len(b) - addedSize; at > 0 && b[len(b)-1] == addedMark {
		var ms [8]byte
		copy(ms[9-addedSize:], b[at:])
		r.added, b = binary.BigEndian.Uint64(ms[:]), b[:at]
	}
	for _, to := range []*uint64{&r.failures, &r.crashes, &r.size} {
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return r, nil, fmt.Errorf("kvqueue: the store holds a record that this package did not write: %x", b)
		}
		*to, b = u, b[n:]
	}
	return r, b, nil
}
