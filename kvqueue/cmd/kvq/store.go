package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// defaultStore is used where neither -store nor $KVQ_STORE names another.
const defaultStore = "sqlite:kvq.db"

// closePatience is how long the store may take to hear that this process is at its end.
const closePatience = 5 * time.Second

// dialPatience is how long a cluster may take to answer for the first time.
const dialPatience = 10 * time.Second

// makes are the commands that make a file that is not there. To the others it is a mistake:
// what was meant is in another one.
var makes = map[string]bool{"put": true, "take": true, "import": true, "configure": true}

// A store is one that was opened.
type store struct {
	kv    kvqueue.KV
	name  string // for people
	close func() error

	path string           // of the file; empty: it is none
	etcd *clientv3.Client // or nil
}

// openStore opens the store of a URL.
func openStore(ctx context.Context, url string, makes bool, how access) (*store, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch {
	case scheme == "mem" && rest == "":
		kv := memkv.New()
		return &store{kv: kv, name: "the memory of this process", close: func() error { kv.Close(); return nil }}, nil
	case scheme == "sqlite" && rest != "":
		return openSQLite(rest, makes)
	case scheme == "bolt":
		return nil, usagef("-store %q: files of this kind are not used any more; kvq import FILE copies one into a new store", url)
	case scheme == "etcd" && rest != "":
		return openEtcd(ctx, strings.Split(rest, ","), how)
	}
	return nil, usagef("-store %q is not known: write it as sqlite:kvq.db or etcd:127.0.0.1:2379; with TLS as etcd:https://host:2379", url)
}

func openSQLite(path string, makes bool) (*store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !makes {
		return nil, &statusError{fmt.Errorf("there is no file %s: kvq put and kvq take make it; -store or $KVQ_STORE names another", path), 1}
	}
	kv, err := sqlitekv.Open(path)
	if err != nil {
		return nil, err
	}
	return &store{kv: kv, name: path, close: kv.Close, path: path}, nil
}
