package sqlitekv

import (
	"encoding/binary"
	"fmt"
)

// A kind says what a change in the log is.
type kind uint64

const (
	put     kind = iota // with its value
	large               // a put whose value is only at the key
	deleted             // has no value
	kinds
)

// mostLogged is the most bytes of a value that is in the log, too. A value that the queues put more
// than once is less; a larger value that was overwritten or deleted since is not shown to watches.
const mostLogged = 256

// appendChange adds a change to those of a revision: the length of the key and the kind, the
// key, and the length of the value and the value if it is there.
func appendChange(b, key, value []byte, delete bool) []byte {
	k := put
	switch {
	case delete:
		k = deleted
	case len(value) > mostLogged:
		k = large
	}
	b = binary.AppendUvarint(b, uint64(len(key))*uint64(kinds)+uint64(k))
	if b = append(b, key...); k == put {
		b = append(binary.AppendUvarint(b, uint64(len(value))), value...)
	}
	return b
}

// changesOf calls each with the changes of a revision.
func changesOf(b []byte, each func(k kind, key, value []byte)) error {
	all := b
	cut := func(most uint64, size int) (part []byte, ok bool) {
		if size <= 0 || most > uint64(len(b)-size) {
			return nil, false
		}
		part, b = b[size:size+int(most)], b[size+int(most):]
		return part, true
	}
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		k := kind(n % uint64(kinds))
		key, ok := cut(n/uint64(kinds), size)
		var value []byte
		if ok && k == put {
			n, size = binary.Uvarint(b)
			value, ok = cut(n, size)
		}
		if !ok {
			return fmt.Errorf("sqlitekv: the file holds changes that this package did not write: %x", all)
		}
		each(k, key, value)
	}
	return nil
}
