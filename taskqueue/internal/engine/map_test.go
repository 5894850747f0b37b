package engine_test

import (
	"context"
	"sync"

	"github.com/tidwall/btree"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
)

// db is an ordered map.
type db struct {
	mu     sync.Mutex
	m      *btree.Map[string, []byte]
	closed bool
}

func (d *db) Do(ctx context.Context, f func(engine.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return taskqueue.ErrClosed
	}
	return f(d)
}

func (d *db) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.m = true, nil
	return nil
}

func (d *db) Get(key []byte) []byte {
	v, ok := d.m.Get(string(key))
	if ok && v == nil {
		v = []byte{}
	}
	return v
}

func (d *db) Put(key, value []byte) { d.m.Set(string(key), value) }
func (d *db) Delete(key []byte)     { d.m.Delete(string(key)) }

func (d *db) Scan(from []byte, f func(key, value []byte) bool) {
	d.m.Ascend(string(from), func(k string, v []byte) bool { return f([]byte(k), v) })
}

func (d *db) ScanBack(before []byte, f func(key, value []byte) bool) {
	d.m.Descend(string(before), func(k string, v []byte) bool { return k == string(before) || f([]byte(k), v) })
}
