package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
)

// This file is of items with ids: workers add the same ones, and repeat a call whose outcome is unknown.

// shared is with what the values begin that any worker may add. The id of each is the value.
const shared = "shared "

// Stands is the word of a worker that was told the key of a value; the key is behind it.
const Stands Word = "stands"

func standsAt(value string, k kvqueue.Key) string { return fmt.Sprintf("%s at %v", value, k) }

// addOnce adds an item that another may have added, or may be adding, and repeats the call while its outcome is
// unknown. A worker that is told nothing leaves open what came of it.
func (w *Worker) addOnce(ctx context.Context, q *kvqueue.Queue) {
	second := time.Now().UnixNano() / int64(w.Second)
	v := fmt.Sprint(shared, second-int64(w.Dice.N(4)/3)) // most calls of one second have one value
	w.Note(Adds, v)
	if w.Dice.N(5) == 0 {
		err := q.Transact(ctx, func(tx *kvqueue.Tx) { tx.Add(q, []byte(v), kvqueue.ID(v)) })
		if err == nil {
			w.Note(Added, v)
		}
		return
	}
	for {
		k, err := q.Add(ctx, []byte(v), kvqueue.ID(v))
		switch {
		case err == nil:
			w.Note(Stands, standsAt(v, k))
			w.Note(Added, v)
			return
		case !errors.Is(err, kvqueue.ErrUnknown) || ctx.Err() != nil:
			return
		}
		w.pause(ctx, 0.1)
	}
}

// checkKeys looks whether each value that was added with an id came once, and each call was told its key.
func (l *Ledger) checkKeys(t testing.TB, in *Auditor) {
	keys := in.keys()
	for text := range l.said[Stands] {
		value, key, _ := strings.Cut(text, " at ")
		if len(keys[value]) > 0 || !in.Blinked() {
			assert.Equal(t, []string{key}, keys[value], "the keys of %s, and what a call was told", value)
		}
	}
}

// keys returns the keys at which each value was put.
func (a *Auditor) keys() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := map[string][]string{}
	for key, b := range a.items {
		of[b.value] = append(of[b.value], fmt.Sprintf("%x", key))
	}
	return of
}
