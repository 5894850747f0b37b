package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/rpc"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/internal/usersocket"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// ErrGone says that the process that has the file cannot be reached any more. The
// call may have been carried out.
var ErrGone = errors.New("taskqueue: the process that has the file has ended")

// A Client is a store in another process. It is a taskqueue.Store.
type Client struct{ c *rpc.Client }

var _ taskqueue.Store = (*Client)(nil)

// Dial returns the store that another process serves at path.
func Dial(path string) (*Client, error) {
	conn, err := usersocket.Dial(path)
	if err != nil {
		return nil, err
	}
	return &Client{rpc.NewClient(conn)}, nil
}

// Starting reports whether an error of Dial may be one of a process that does not listen
// yet, or not any more.
func Starting(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// do makes a call. If ctx is done before the answer the call may be carried out yet.
func (c *Client) do(ctx context.Context, what Call) (*Answer, error) {
	a := new(Answer)
	what.Version = version
	made := c.c.Go("Store.Do", what, a, make(chan *rpc.Call, 1))
	select {
	case <-made.Done:
		if made.Error != nil {
			return nil, fmt.Errorf("%w: %w", ErrGone, made.Error)
		}
		return a, a.error()
	case <-ctx.Done():
		return nil, context.Cause(ctx) // a may still be written to
	}
}

// get makes a call and returns what f takes from the answer.
func get[T any](ctx context.Context, c *Client, what Call, f func(*Answer) T) (T, error) {
	a, err := c.do(ctx, what)
	if err != nil {
		return *new(T), err
	}
	return f(a), nil
}

// Enqueue is a method of taskqueue.Store, as all that follow.
func (c *Client) Enqueue(ctx context.Context, queue string, tasks []taskqueue.NewTask) ([]taskqueue.Result, error) {
	return get(ctx, c, Call{Do: "enqueue", Queue: queue, Tasks: tasks}, func(a *Answer) []taskqueue.Result { return a.Results })
}

func (c *Client) Claim(ctx context.Context, r taskqueue.ClaimRequest) (taskqueue.Claimed, error) {
	return get(ctx, c, Call{Do: "claim", Claim: r}, func(a *Answer) taskqueue.Claimed { return a.Claimed })
}

func (c *Client) Extend(ctx context.Context, r taskqueue.ExtendRequest) ([]taskqueue.ExtendResult, error) {
	return get(ctx, c, Call{Do: "extend", Extend: r}, func(a *Answer) []taskqueue.ExtendResult { return a.Extended })
}

func (c *Client) Settle(ctx context.Context, queue string, outcomes []taskqueue.Outcome) ([]taskqueue.SettleResult, error) {
	return get(ctx, c, Call{Do: "settle", Queue: queue, Outcomes: outcomes}, func(a *Answer) []taskqueue.SettleResult { return a.Settled })
}

func (c *Client) Wait(ctx context.Context, queue string, seen uint64, until time.Time) error {
	_, err := c.do(ctx, Call{Do: "wait", Queue: queue, Seen: seen, Wait: max(clock.Until(until), 0)})
	return err
}

func (c *Client) Get(ctx context.Context, queue, id string) (taskqueue.Info, error) {
	return get(ctx, c, Call{Do: "get", Queue: queue, ID: id}, func(a *Answer) taskqueue.Info { return a.Info })
}

func (c *Client) List(ctx context.Context, queue string, r taskqueue.ListRequest) (taskqueue.Page, error) {
	return get(ctx, c, Call{Do: "list", Queue: queue, List: r}, func(a *Answer) taskqueue.Page { return a.Page })
}

func (c *Client) Queues(ctx context.Context) ([]string, error) {
	return get(ctx, c, Call{Do: "queues"}, func(a *Answer) []string { return a.Queues })
}

func (c *Client) Stats(ctx context.Context, queue string) (taskqueue.Stats, error) {
	return get(ctx, c, Call{Do: "stats", Queue: queue}, func(a *Answer) taskqueue.Stats { return a.Stats })
}

func (c *Client) Act(ctx context.Context, queue, id string, act taskqueue.Act) (bool, error) {
	return get(ctx, c, Call{Do: "act", Queue: queue, ID: id, Act: act}, func(a *Answer) bool { return a.Done })
}

func (c *Client) Purge(ctx context.Context, queue string, s taskqueue.State, cursor string) (int, string, error) {
	a, err := c.do(ctx, Call{Do: "purge", Queue: queue, State: s, Cursor: cursor})
	if err != nil {
		return 0, "", err
	}
	return a.N, a.Cursor, nil
}

func (c *Client) Configure(ctx context.Context, queue string, f func(*taskqueue.Settings)) error {
	for {
		now, err := c.Stats(ctx, queue)
		if err != nil {
			return err
		}
		set := now.Settings
		f(&set)
		done, err := get(ctx, c, Call{Do: "configure", Queue: queue, Before: now.Settings, Settings: set}, func(a *Answer) bool { return a.Done })
		if err != nil || done {
			return err
		}
	}
}

func (c *Client) Tick(ctx context.Context, t taskqueue.Tick) (bool, error) {
	return get(ctx, c, Call{Do: "tick", Tick: t}, func(a *Answer) bool { return a.Done })
}

func (c *Client) Unschedule(ctx context.Context, queue, name string) (bool, error) {
	return get(ctx, c, Call{Do: "unschedule", Queue: queue, ID: name}, func(a *Answer) bool { return a.Done })
}

func (c *Client) Periodic(ctx context.Context, queue string) ([]taskqueue.Periodic, error) {
	return get(ctx, c, Call{Do: "periodic", Queue: queue}, func(a *Answer) []taskqueue.Periodic { return a.Periodic })
}

func (c *Client) Audit(ctx context.Context, queue string) ([]string, error) {
	return get(ctx, c, Call{Do: "audit", Queue: queue}, func(a *Answer) []string { return a.Faults })
}

func (c *Client) Close() error { return c.c.Close() }
