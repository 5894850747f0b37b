package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A line is a server's port that loses answers, or all that is said.
type line struct {
	listener net.Listener
	socket   string
	pass     atomic.Int64 // so many of the next scripts are let pass
	lose     atomic.Int64 // the answers to so many of those that follow, each with its connection
	silent   atomic.Bool  // nothing is passed on
	heard    func()       // called when a script is said and nothing is passed on; nil: nothing
	losing   func()       // called when an answer has come, before it is lost; nil: nothing
}

// newLine returns a line to the server of client.
func newLine(t *testing.T, client *redis.Client) *line {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	n := &line{listener: l, socket: client.Options().Addr}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("unix", n.socket)
			if err != nil {
				_ = c.Close()
				continue
			}
			lost := new(atomic.Bool)
			go n.carry(c, s, func(b []byte) bool {
				if bytes.Contains(b, []byte("evalsha")) && n.pass.Add(-1) < 0 && n.lose.Add(-1) >= 0 {
					lost.Store(true)
				}
				return true
			})
			go n.carry(s, c, func([]byte) bool {
				if lost.Load() && n.losing != nil {
					n.losing()
				}
				return !lost.Load()
			})
		}
	}()
	return n
}

func (n *line) carry(from, to net.Conn, pass func(b []byte) bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	b := make([]byte, 64<<10)
	for {
		k, err := from.Read(b)
		if err != nil {
			return
		}
		if n.silent.Load() {
			if n.heard != nil && bytes.Contains(b[:k], []byte("evalsha")) {
				n.heard()
			}
			continue
		}
		if !pass(b[:k]) {
			return
		}
		if _, err := to.Write(b[:k]); err != nil {
			return
		}
	}
}

// open opens the store at the other end. settings are those of the client, in its URL.
func (n *line) open(t *testing.T, settings ...string) taskqueue.Store {
	s, err := taskqueue.Open(ctx, "redis://"+n.listener.Addr().String()+"/0?"+strings.Join(settings, "&"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// A call that is made once more by itself would be answered with false: nothing to cancel.
func TestAnActWhoseAnswerIsLostIsNoRefusal(t *testing.T) {
	client := server(t)
	direct := open(t, client)
	n := newLine(t, client)
	s := n.open(t)
	_, err := s.Act(ctx, "q", "a", store.ActCancel) // the server knows the script from now on
	require.ErrorIs(t, err, taskqueue.ErrNotFound)
	for _, act := range []store.Act{store.ActPromote, store.ActCancel, store.ActRetry, store.ActDelete} {
		later := task("a")
		later.Delay = time.Hour
		_, err := direct.Enqueue(ctx, "q", []taskqueue.Task{later})
		require.NoError(t, err)
		n.lose.Store(1)
		ok, err := s.Act(ctx, "q", "a", act)
		assert.ErrorIs(t, err, io.EOF, "%v answers %v", act, ok)
		n.lose.Store(0)
		if act == store.ActDelete {
			_, err := s.Get(ctx, "q", "a")
			assert.ErrorIs(t, err, taskqueue.ErrNotFound, "it was carried out")
		}
	}
	configure(t, s, taskqueue.Settings{MaxDead: 1})
	n.pass.Store(1) // it reads the settings first
	n.lose.Store(1)
	_, err = s.Configure(ctx, "q", taskqueue.Settings{MaxDead: 1}, taskqueue.Settings{MaxDead: 2})
	assert.ErrorIs(t, err, io.EOF)
	st, err := direct.Stats(ctx, "q")
	require.NoError(t, err)
	assert.Equal(t, 2, st.Settings.MaxDead)
	enqueue(t, direct, task("b"))
	n.lose.Store(1)
	gone, _, err := s.Purge(ctx, "q", taskqueue.StateReady, "")
	assert.ErrorIs(t, err, io.EOF, "Purge answers %d", gone)
}

// The steps of workers are answered again with what they have done.
func TestAStepWhoseAnswerIsLostIsRepeated(t *testing.T) {
	client := server(t)
	n := newLine(t, client)
	s := n.open(t)
	enqueueBy := func() []taskqueue.Result {
		r, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("a")})
		require.NoError(t, err)
		return r
	}
	enqueueBy() // its queue is registered
	n.lose.Store(1)
	assert.Equal(t, taskqueue.Exists, enqueueBy()[0].Verdict)
	n.lose.Store(1)
	got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 1, Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, got.Tasks, 1)
	ref := store.Ref{ID: "a", Token: got.Tasks[0].Token}
	n.lose.Store(1)
	e, err := s.Extend(ctx, store.ExtendRequest{Queue: "q", Worker: "w", Lease: time.Minute, Refs: []store.Ref{ref}})
	require.NoError(t, err)
	assert.Equal(t, []store.ExtendResult{store.Extended}, e)
	n.lose.Store(1)
	r, err := s.Settle(ctx, "q", []store.Outcome{{Ref: ref, Kind: store.Succeeded}})
	require.NoError(t, err)
	assert.Equal(t, []store.SettleResult{store.Settled}, r)
	st, err := s.Stats(ctx, "q")
	require.NoError(t, err)
	assert.EqualValues(t, 1, st.Counts[taskqueue.CountDone])
	assert.EqualValues(t, 1, st.Counts[taskqueue.CountClaimed])
	audited(t, s.(*redisstore.Store))
}

func TestACallOnASilentConnectionEndsWithItsContext(t *testing.T) {
	client := server(t)
	n := newLine(t, client)
	s := n.open(t, "read_timeout=5m")
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("a")})
	require.NoError(t, err)
	n.silent.Store(true)
	for name, call := range map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error {
			_, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 1, Lease: time.Minute})
			return err
		},
		"extend": func(ctx context.Context) error {
			_, err := s.Extend(ctx, store.ExtendRequest{Queue: "q", Worker: "w", Lease: time.Minute, Refs: []store.Ref{{ID: "a", Token: 1}}})
			return err
		},
		"settle": func(ctx context.Context) error {
			_, err := s.Settle(ctx, "q", []store.Outcome{{Ref: store.Ref{ID: "a", Token: 1}, Kind: store.Succeeded}})
			return err
		},
		"act": func(ctx context.Context) error { _, err := s.Act(ctx, "q", "a", store.ActCancel); return err },
		"enqueue": func(ctx context.Context) error {
			_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("b")})
			return err
		},
	} {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		begin := time.Now()
		assert.Error(t, call(short), name)
		assert.Less(t, time.Since(begin), 5*time.Minute, "%s: not with the ReadTimeout of the client", name)
		cancel()
	}
}

// The first answer is lost, and the step is refused when it is sent again: as a server does that
// was killed and loads what it has stored.
func TestAnEnqueueThatIsRefusedAfterALostAnswerIsUnknown(t *testing.T) {
	client := server(t)
	n := newLine(t, client)
	s := n.open(t)
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("first")})
	require.NoError(t, err)
	n.losing = func() { assert.NoError(t, client.ReplicaOf(ctx, "127.0.0.1", "1").Err()) }
	n.lose.Store(1)
	_, err = s.Enqueue(ctx, "q", []taskqueue.Task{task("a")})
	assert.ErrorIs(t, err, taskqueue.ErrUnknown)
	assert.ErrorContains(t, err, "READONLY")
	_, err = s.Enqueue(ctx, "q", []taskqueue.Task{task("b")})
	assert.NotErrorIs(t, err, taskqueue.ErrUnknown, "it was refused each time")
	assert.ErrorContains(t, err, "READONLY")
	require.NoError(t, client.ReplicaOf(ctx, "NO", "ONE").Err())
	_, err = s.Get(ctx, "q", "a")
	assert.NoError(t, err, "it was carried out")
	_, err = s.Get(ctx, "q", "b")
	assert.ErrorIs(t, err, taskqueue.ErrNotFound)
}

// Nothing can have been added by a server that is not there.
func TestAnEnqueueThatWasNeverSentIsNotUnknown(t *testing.T) {
	other := redis.NewClient(server(t).Options())
	defer func() { assert.NoError(t, other.Close()) }()
	g := new(refusing)
	other.AddHook(g)
	s := open(t, other)
	enqueue(t, s, task("first"))
	g.on.Store(true)
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("a")})
	assert.ErrorContains(t, err, "nobody is there")
	assert.NotErrorIs(t, err, taskqueue.ErrUnknown)
}

// refusing has each command fail before it is sent.
type refusing struct {
	redis.Hook
	on atomic.Bool
}

func (g *refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if g.on.Load() {
			cmd.SetErr(&net.OpError{Op: "dial", Err: errors.New("nobody is there")})
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// The caller does not wait for ever for an answer that does not come, and is told that there may be one.
func TestAnEnqueueWhoseDeadlineHasPassedIsUnknownOnceItWasSent(t *testing.T) {
	client := server(t)
	n := newLine(t, client)
	passes := overdue{ctx, make(chan struct{})}
	n.heard = sync.OnceFunc(func() { close(passes.done) })
	s := n.open(t)
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("first")})
	require.NoError(t, err)
	n.silent.Store(true)
	_, err = s.Enqueue(passes, "q", []taskqueue.Task{task("a")})
	assert.ErrorIs(t, err, taskqueue.ErrUnknown)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// overdue is a context whose deadline passes when done is closed.
type overdue struct {
	context.Context
	done chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.done }

func (o overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
