// Package memstore is a taskqueue.Store in memory, for tests and for programs whose
// tasks may be lost when they end. It works in testing/synctest bubbles.
package memstore

import (
	"context"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

func init() {
	taskqueue.Register("mem", func(context.Context, string) (taskqueue.Store, error) { return New(), nil })
}

// New returns an empty store: that of package sqlstore on a SQLite database in memory, with the
// clock of the program. For a bubble of testing/synctest call New in the bubble. It has no
// goroutines; Close gives its memory back, which the garbage collector does not.
func New() taskqueue.Store {
	s, err := sqlstore.OpenFile(context.Background(), ":memory:")
	if err != nil {
		panic(err) // there is nothing in it that could be wrong
	}
	return s
}
