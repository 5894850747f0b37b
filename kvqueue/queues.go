package kvqueue

import (
	"bytes"
	"context"
	"net/url"
	"slices"
)

// Queues returns the names of the queues in a store, sorted: those that were ever opened under the [Prefix], "kvq" by
// default.
//
//	names, err := kvqueue.Queues(ctx, kv, kvqueue.Prefix("shop"))
//
// It goes from queue to queue by two bounded reads for each, and reads no items. An etcd, which visits every key of a
// range, takes about 0.1 µs for each key of the queues that follow. Keys that are of no queue are left out. Options
// other than Prefix change nothing. It blocks until the store has answered, or ctx ends.
func Queues(ctx context.Context, kv KV, options ...Option) (names []string, err error) {
	set := settings{prefix: defaultPrefix}
	for _, o := range options {
		if o == nil {
			return nil, invalid("option", "it is nil: leave it out")
		}
		if err := o.apply(&set); err != nil {
			return nil, err
		}
	}
	root := []byte(escape(set.prefix) + "/")
	for begin, end := root, after(root); ; {
		results, _, err := kv.Read(ctx, Range{Begin: begin, End: end, Limit: 1, KeysOnly: true})
		if err != nil {
			return nil, err
		}
		if len(results[0].Pairs) == 0 {
			slices.Sort(names)
			return names, nil
		}
		key := results[0].Pairs[0].Key
		name, _, within := bytes.Cut(key[len(root):], []byte("/"))
		if !within {
			begin = append(bytes.Clone(key), 0)
			continue
		}
		l := layout{string(root) + string(name) + "/"}
		begin = after([]byte(l.root))
		if results, _, err = kv.Read(ctx, Range{Begin: l.head(), KeysOnly: true}); err != nil {
			return nil, err
		}
		if plain, ok := nameOf(string(name)); ok && len(results[0].Pairs) > 0 {
			names = append(names, plain)
		}
	}
}

// nameOf returns the name that escape has written so; false: it has not written that.
func nameOf(text string) (name string, ok bool) {
	name, err := url.PathUnescape(text)
	return name, err == nil && name != "" && escape(name) == text
}
