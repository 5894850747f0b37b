package taskqueue

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"sync"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// ids are 16 bytes in the order in which they were made: 48 bits of milliseconds,
// then 80 bits that are drawn, or one more than those of the id before if that is of
// the same millisecond. They are written in an alphabet that sorts as the bytes do.
var idText = base32.HexEncoding.WithPadding(base32.NoPadding)

var lastID struct {
	sync.Mutex
	ms   int64
	high uint16
	low  uint64
}

// newID returns an id that sorts behind all that this process has made.
func newID() string {
	lastID.Lock()
	defer lastID.Unlock()
	ms := clock.Now().UnixMilli()
	if ms > lastID.ms {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails
		lastID.ms = ms
		lastID.high, lastID.low = binary.BigEndian.Uint16(b[:])>>1, binary.BigEndian.Uint64(b[2:])
	} else if lastID.low++; lastID.low == 0 {
		lastID.high++
	}
	b := make([]byte, 0, 16)
	b = binary.BigEndian.AppendUint16(b, uint16(lastID.ms>>32))
	b = binary.BigEndian.AppendUint32(b, uint32(lastID.ms))
	b = binary.BigEndian.AppendUint16(b, lastID.high)
	b = binary.BigEndian.AppendUint64(b, lastID.low)
	return idText.EncodeToString(b)
}
