// Package engine is what the stores in memory and in a file have in common: every
// step of a store, written once over an ordered map of bytes. A DB says where the
// map is and what makes a step durable.
package engine

import (
	"context"
	"encoding/binary"
	"time"
)

// A DB is an ordered map of bytes with one writer at a time.
type DB interface {
	// Do calls f, alone, and returns when what f wrote is durable. If f returns an
	// error it has written nothing. Several calls may be made durable together.
	Do(ctx context.Context, f func(Tx) error) error
	Close() error
}

// A Tx is used during one call of Do. What it returns is valid during that call and
// must not be changed.
type Tx interface {
	Get(key []byte) []byte
	Put(key, value []byte)
	Delete(key []byte)
	// Scan calls f in the order of the keys, from the first that is not less than
	// from, until f returns false. f must not write.
	Scan(from []byte, f func(key, value []byte) bool)
	// ScanBack calls f in the inverse order, from the last key that is less than before.
	ScanBack(before []byte, f func(key, value []byte) bool)
}

// The first byte of a key says what it is about. The name of the queue follows, and
// a zero byte, which no name has. Numbers are big-endian, so that keys sort as they
// do.
const (
	keyQueue    = 'q' // queue: its meta
	keyTask     = 't' // queue, id: the record
	keyDue      = 'd' // queue, class, due, id: 1 if it is a retry. The most urgent class is 0 here.
	keyRetry    = 'y' // queue, due, id: nothing. Those of keyDue that are retries
	keyRunning  = 'r' // queue, id: nothing
	keyEnded    = 'e' // queue, state, when, id: nothing
	keyForget   = 'f' // queue, when, id: nothing. Done and cancelled tasks, which are kept until then
	keyUnique   = 'u' // queue, unique key: the id of the task that holds it
	keyPeriodic = 'p' // queue, name: a taskqueue.Periodic
)

func key(kind byte, queue string) []byte {
	k := make([]byte, 0, len(queue)+48)
	k = append(k, kind)
	k = append(k, queue...)
	return append(k, 0)
}

func withTime(k []byte, t time.Time) []byte { return binary.BigEndian.AppendUint64(k, micros(t)) }

// micros is t in the precision that is stored. Times before 1970 count as 1970.
func micros(t time.Time) uint64 { return uint64(max(t.UnixMicro(), 0)) }

func fromMicros(b []byte) time.Time { return time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC() }

// scan calls f with what follows prefix in each key that begins with it.
func scan(tx Tx, prefix []byte, f func(rest, value []byte) bool) {
	tx.Scan(prefix, func(k, v []byte) bool {
		return len(k) >= len(prefix) && string(k[:len(prefix)]) == string(prefix) && f(k[len(prefix):], v)
	})
}
