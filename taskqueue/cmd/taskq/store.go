package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	_ "github.com/ambit-go/ambit/taskqueue/redisstore"
	_ "github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// defaultStore is used where neither -store nor $TASKQ_STORE names another.
const defaultStore = "sqlite:taskq.db"

// makes are the commands that make a file that is not there. To the others it is a
// mistake: what was meant is in another one.
var makes = map[string]bool{"enqueue": true, "work": true, "bench": true, "import": true}

// open opens the store for a command.
func (e *env) open(ctx context.Context, name string) error {
	path, isFile := strings.CutPrefix(e.url, "sqlite:")
	switch {
	case e.url == "":
		return usagef("-store is empty: write it as sqlite:tasks.db, postgres://user@localhost/db or redis://localhost:6379/0")
	case isFile && strings.TrimPrefix(path, "//") == "":
		return usagef("-store %s names no file: write it as sqlite:tasks.db", e.url)
	case isFile && !makes[name]:
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no file %s with tasks: "+
				"taskq enqueue and taskq work make it; -store or $TASKQ_STORE names another", path)
		}
	}
	redis.SetLogger(silent{}) // it tells of each attempt; what comes of them is in the error
	store, err := taskqueue.Open(ctx, e.url)
	if err != nil {
		return err
	}
	e.store = store
	return nil
}

// purgeAll deletes all tasks of a queue that nobody works with any more.
func purgeAll(ctx context.Context, q *taskqueue.Queue) error {
	for s := taskqueue.StateScheduled; s <= taskqueue.StateWaiting; s++ {
		if s == taskqueue.StateRunning {
			continue // Work has returned
		}
		if _, err := q.Purge(ctx, s); err != nil {
			return fmt.Errorf("the tasks of queue %s could not all be deleted: %w", q.Name(), err)
		}
	}
	return nil
}

// silent is a logger of package redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// storeName is the URL of a store as everybody may see it: without a password.
func storeName(raw string) string {
	scheme, _, _ := strings.Cut(raw, ":")
	if scheme == "sqlite" {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return scheme + ":"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
