package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
)

// errEnded is of a watch that ended without a reason.
var errEnded = errors.New("etcdkv: the watch has ended, as it does when the client is closed")

// errSilent is of a watch whose member says nothing, and does not answer.
var errSilent = errors.New("etcdkv: the member that is watched does not answer")

// An opener makes the watcher of each watch.
type opener interface{ open() clientv3.Watcher }

type ofClient struct{ *clientv3.Client }

func (c ofClient) open() clientv3.Watcher { return clientv3.NewWatcher(c.Client) }

// Watch yields the changes of the prefixes, each of which is a watcher of one gRPC stream. A
// break of the connection is mended by the client. A member that has lost its leader ends the
// watch with an error; so does one that stands still: one of which nothing is heard for half of
// the [Timeout] is asked whether it is there, and has as long to answer. A member that was restored,
// and has not come to the revision yet, does not answer either.
func (s *Store) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		watcher := s.watches.open() // its stream is no other watch's, so a silent one ends with this
		defer watcher.Close()
		var readers sync.WaitGroup
		defer readers.Wait()
		defer cancel()
		answers := make(chan clientv3.WatchResponse)
		for _, prefix := range prefixes {
			readers.Go(func() { // a silent member lets the client wait here
				forward(ctx, watcher.Watch(ctx, string(prefix), clientv3.WithPrefix(), clientv3.WithRev(int64(after)+1)), answers)
			})
		}
		quiet := time.NewTicker(s.timeout / 2)
		defer quiet.Stop()
		for heard, asked, seen := true, false, int64(after); ; {
			select {
			case a := <-answers:
				if heard = heard || a.Header.Revision >= seen; !yieldAnswer(ctx, a, yield) {
					return
				}
				for _, e := range a.Events { // of a member that was restored they may be older than what was seen
					seen = max(seen, e.Kv.ModRevision)
				}
			case <-quiet.C:
				switch {
				case heard:
					heard, asked = false, false
				case asked:
					yield(kvqueue.Event{}, errSilent)
					return
				default:
					asked = true
					readers.Go(func() { s.ask(ctx, watcher, answers) })
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// ask has a member answer on the stream of a watch, by one more watcher that is told to say that it
// has begun. It is no request of the progress: while the revision at which a watcher begins has not
// come, as in a cluster in which nothing is written, etcd does not answer that.
func (s *Store) ask(ctx context.Context, watcher clientv3.Watcher, to chan<- clientv3.WatchResponse) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	select {
	case a := <-watcher.Watch(ctx, "\x00", clientv3.WithCreatedNotify()):
		if a.Created && !a.Canceled {
			select {
			case to <- a:
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
}

// forward passes on the answers of one watcher until it ends or ctx does. The last one says
// why it has ended.
func forward(ctx context.Context, from clientv3.WatchChan, to chan<- clientv3.WatchResponse) {
	for ended := false; !ended; {
		a, open := <-from // ends with ctx
		ended = !open || a.Canceled
		a.Canceled = ended
		select {
		case to <- a:
		case <-ctx.Done():
			return
		}
	}
}

// yieldAnswer yields the events of an answer, and reports whether there may be more.
func yieldAnswer(ctx context.Context, a clientv3.WatchResponse, yield func(kvqueue.Event, error) bool) bool {
	switch {
	case ctx.Err() != nil:
		return false
	case a.Canceled:
		yield(kvqueue.Event{}, endOf(a))
		return false
	}
	for _, e := range a.Events {
		if !yield(kvqueue.Event{Pair: pair(e.Kv), Deleted: e.Type == clientv3.EventTypeDelete}, nil) {
			return false
		}
	}
	return true
}

// endOf says why a watch has ended.
func endOf(a clientv3.WatchResponse) error {
	switch err := a.Err(); {
	case a.CompactRevision != 0:
		return fmt.Errorf("%w: those before revision %d", kvqueue.ErrCompacted, a.CompactRevision)
	case is(err, rpctypes.ErrFutureRev): // what a watch says that has nothing else to say
		return errEnded
	default:
		return fmt.Errorf("etcdkv: watch: %w", err)
	}
}
