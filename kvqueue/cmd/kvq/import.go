package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/kvqueue"
)

func importCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if len(e.args) != 1 {
			return usagef("import needs one argument: name the file that an earlier version has made")
		}
		pairs, err := readBolt(e.args[0])
		if err != nil {
			return err
		}
		if err := copyPairs(ctx, e.store.kv, pairs); err != nil {
			return err
		}
		e.sayf("%d keys of %s are in %s\n", len(pairs), e.args[0], e.store.name)
		return nil
	}
}

// readBolt reads the keys of a file as the package boltkv of earlier versions has written them: in
// one bucket, with a letter before those of the queues; a value stands behind its revision and its
// session, of eight bytes each. A key that has a session has ended with it.
func readBolt(path string) (pairs []kvqueue.Pair, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s is no file of an earlier version", path))
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 3 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read; is it a file of an earlier version, and is no process using it? %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bbolt.Tx) error {
		about, bucket := tx.Bucket([]byte("about")), tx.Bucket([]byte("kvqueue"))
		if about == nil || bucket == nil || string(about.Get([]byte("format"))) != "1" {
			return fmt.Errorf("%s is a file of another program", path)
		}
		return bucket.ForEach(func(key, value []byte) error {
			switch {
			case key[0] != 'u':
			case len(value) < 16:
				return fmt.Errorf("%s is damaged: the key %q has %d bytes", path, key, len(value))
			case binary.BigEndian.Uint64(value[8:]) == 0:
				pairs = append(pairs, kvqueue.Pair{Key: bytes.Clone(key[1:]), Value: bytes.Clone(value[16:])})
			}
			return nil
		})
	})
	return pairs, err
}

// copyPairs puts keys that are not there yet, as many in a transaction as it holds: none of them
// if one is there.
func copyPairs(ctx context.Context, kv kvqueue.KV, pairs []kvqueue.Pair) error {
	for _, p := range pairs {
		results, _, err := kv.Read(ctx, kvqueue.Range{Begin: p.Key, KeysOnly: true})
		if err != nil {
			return err
		}
		if len(results[0].Pairs) > 0 {
			return fmt.Errorf("the store has the key %q already, and nothing was copied: use a store without these queues", p.Key)
		}
	}
	limits := kv.Limits()
	most := min(limits.Guards, limits.Writes)
	for len(pairs) > 0 {
		var guards []kvqueue.Guard
		var writes []kvqueue.Write
		size := 0
		for _, p := range pairs {
			if size += len(p.Key) + len(p.Value); len(writes) > 0 && (len(writes) == most || size > limits.Bytes) {
				break
			}
			guards = append(guards, kvqueue.Guard{Key: p.Key, Is: kvqueue.Absent})
			writes = append(writes, kvqueue.Write{Key: p.Key, Value: p.Value})
		}
		if _, err := kv.Commit(ctx, guards, writes); err != nil {
			return fmt.Errorf("the file was copied in part, up to %q; remove the new store, and try again: %w", pairs[0].Key, err)
		}
		pairs = pairs[len(writes):]
	}
	return nil
}
