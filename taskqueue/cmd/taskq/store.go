package main

import (
	"context"
	"errors"
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
	path, isFile := filePath(e.url)
	switch {
	case e.url == "":
		return usagef("-store is empty: write it as sqlite:tasks.db, postgres://user@localhost/db or redis://localhost:6379/0")
	case isFile && strings.TrimPrefix(path, "//") == "":
		return usagef("-store %s names no file: write it as sqlite:tasks.db", e.url)
	case isFile && !makes[name]:
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); errors.Is(err, fs.ErrNotExist) {
			return &statusError{&fileError{path}, 1}
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

// filePath returns the path of a store that is a file.
func filePath(url string) (path string, isFile bool) {
	for _, scheme := range []string{"sqlite:"} {
		if path, ok := strings.CutPrefix(url, scheme); ok {
			return path, true
		}
	}
	return "", false
}

// A fileError says that there is no file, and what to do.
type fileError struct{ path string }

func (e *fileError) Error() string {
	return "there is no file " + e.path + " with tasks: taskq enqueue and taskq work make it; -store or $TASKQ_STORE names another"
}

func (e *fileError) Unwrap() error { return fs.ErrNotExist }

// silent is a logger of package redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// storeName is the URL of a store as everybody may see it: without a password.
func storeName(raw string) string {
	if _, isFile := filePath(raw); isFile {
		return raw
	}
	scheme, _, _ := strings.Cut(raw, ":")
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return scheme + ":"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
