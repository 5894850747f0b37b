package taskqueue_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// An order and the mail about it are written together, or neither is.
func ExampleQueue_EnqueueTx() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "shop")
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "shop.db")
	store, err := sqlstore.OpenFile(ctx, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	q, _ := taskqueue.New(store)
	db, _ := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	defer func() { _ = db.Close() }()
	_, _ = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY)")

	order := func(id string, commit bool) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if _, err := tx.Exec("INSERT INTO orders VALUES (?)", id); err != nil {
			return err
		}
		if _, err := q.EnqueueTx(ctx, tx, taskqueue.Task{ID: "mail about " + id, Type: "mail"}); err != nil || !commit {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(order("a", true), order("b", false))
	for _, id := range []string{"a", "b"} {
		i, err := q.Get(ctx, "mail about "+id)
		fmt.Println(id, i.State == taskqueue.StateReady, err)
	}
	// Output:
	// <nil> <nil>
	// a true <nil>
	// b false taskqueue: there is no such task
}
