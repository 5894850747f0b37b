package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// Any number of processes may open the same file.
func ExampleOpenFile() {
	dir, _ := os.MkdirTemp("", "tasks")
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlstore.OpenFile(context.Background(), filepath.Join(dir, "tasks.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	q, _ := taskqueue.New(store)
	id, err := q.Enqueue(context.Background(), taskqueue.Task{ID: "a", Type: "mail"})
	fmt.Println(id, err)
	// Output: a <nil>
}

// The tables of the store are beside those of the program.
func ExampleNew() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "shop")
	defer func() { _ = os.RemoveAll(dir) }()
	db, _ := sql.Open("sqlite", filepath.Join(dir, "shop.db")+"?_pragma=journal_mode(WAL)")
	defer func() { _ = db.Close() }()
	store, err := sqlstore.New(ctx, db, sqlstore.Prefix("shop_tasks_"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	var n int
	err = db.QueryRow("SELECT count(*) FROM shop_tasks_task").Scan(&n)
	fmt.Println(n, err)
	// Output: 0 <nil>
}
