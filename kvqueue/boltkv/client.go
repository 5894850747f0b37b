package boltkv

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/ambit-go/ambit/internal/usersocket"
	"github.com/ambit-go/ambit/kvqueue"
)

// A Client is a [kvqueue.KV] in a file that another process has. It is made by [Dial].
type Client struct {
	conn   net.Conn
	limits kvqueue.Limits
	sends  chan *request // to the one that writes
	gone   chan struct{} // closed when err says why the connection has ended
	silent time.Duration // how long a call waits for its answer
	ended  sync.WaitGroup

	bell chan struct{} // of size 1: there are ends of watches to send

	mu    sync.Mutex
	last  uint64 // request
	calls map[uint64]func(*answer)
	ends  []uint64 // watches that are to end; their callers do not wait for that
	err   error
}

var _ kvqueue.KV = (*Client)(nil)

// helloPatience is how long the process that has the file may take to say hello.
const helloPatience = 10 * time.Second

// answerPatience is how long it may take to answer a call, whose context may have no end: it may
// have been stopped, and not ended.
const answerPatience = 30 * time.Second

// errSilent is of a call that was not answered.
var errSilent = errors.New("boltkv: the process that has the file does not answer: it may have been stopped")

// Dial reaches the process that has the file open. A call whose connection ends fails with
// [ErrGone], and so do all later ones; a Commit that was sent by then is
// [kvqueue.ErrUnknown], too. A call that is not answered within 30 s fails, whatever its context
// says: that process may have been stopped. Sessions are those of the process that has the file: they end
// when they were not renewed for their TTL, however their owner came to its end.
func Dial(path string) (*Client, error) {
	path, err := canonical(path)
	if err != nil {
		return nil, err
	}
	conn, err := usersocket.Dial(path + ".sock")
	if err != nil {
		return nil, fmt.Errorf("boltkv: no process answers at %s.sock: use Open, or start the one that is to have the file: %w", path, err)
	}
	c := &Client{conn: conn, sends: make(chan *request, 64), gone: make(chan struct{}), silent: answerPatience, bell: make(chan struct{}, 1), calls: map[uint64]func(*answer){}}
	out, in := bufio.NewWriter(conn), bufio.NewReader(conn)
	w, r := gob.NewEncoder(out), gob.NewDecoder(in)
	if err := c.greet(w, out, r); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.ended.Go(func() { c.write(w, out) })
	c.ended.Go(func() { c.read(r) })
	return c, nil
}

func (c *Client) greet(w *gob.Encoder, out *bufio.Writer, r *gob.Decoder) error {
	_ = c.conn.SetDeadline(time.Now().Add(helloPatience))
	err := w.Encode(hello{Protocol: protocol})
	if err == nil {
		err = out.Flush()
	}
	var h hello
	if err == nil {
		err = r.Decode(&h)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: it has not said hello: %w", ErrGone, err)
	case h.Protocol != protocol:
		return fmt.Errorf("boltkv: the process that has the file speaks version %d of the protocol, and this program version %d: use the same version of both", h.Protocol, protocol)
	}
	c.limits = h.Limits
	return c.conn.SetDeadline(time.Time{})
}

// Close ends the connection. What was sent may be done all the same.
func (c *Client) Close() error {
	c.fail(kvqueue.ErrClosed)
	c.ended.Wait()
	return nil
}

// fail ends the connection: err is what later calls return.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.gone)
		_ = c.conn.Close()
	}
}

// write sends requests until the connection ends.
func (c *Client) write(w *gob.Encoder, out *bufio.Writer) {
	for {
		var err error
		select {
		case r := <-c.sends:
			err = w.Encode(r)
		case <-c.bell:
			err = c.writeEnds(w)
		case <-c.gone:
			return
		}
		if err == nil && len(c.sends) == 0 {
			err = out.Flush()
		}
		if err != nil {
			c.fail(fmt.Errorf("%w: %w", ErrGone, err))
		}
	}
}

// writeEnds sends the ends of watches, behind all requests that were there before: a watch whose
// end came first would never end.
func (c *Client) writeEnds(w *gob.Encoder) (err error) {
	ends := c.endsOfWatches()
	for range len(c.sends) {
		err = errors.Join(err, w.Encode(<-c.sends))
	}
	for _, id := range ends {
		err = errors.Join(err, w.Encode(&request{ID: id, Op: opForget}))
	}
	return err
}

func (c *Client) endsOfWatches() []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := c.ends
	c.ends = nil
	return ends
}

// unwatch has the process that has the file end a watch.
func (c *Client) unwatch(r *request) {
	c.mu.Lock()
	c.ends = append(c.ends, r.ID)
	c.mu.Unlock()
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// read takes answers to their callers until the connection ends.
func (c *Client) read(r *gob.Decoder) {
	for {
		a := new(answer)
		if err := r.Decode(a); err != nil {
			c.fail(fmt.Errorf("%w: %w", ErrGone, err))
			return
		}
		c.mu.Lock()
		f := c.calls[a.ID]
		c.mu.Unlock()
		if f != nil {
			f(a)
		}
	}
}

// expect has f called with the answers to a request. It must not block.
func (c *Client) expect(r *request, f func(*answer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	r.ID = c.last
	c.calls[r.ID] = f
}

func (c *Client) forget(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, r.ID)
}

// why returns why the connection has ended.
func (c *Client) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// send hands a request to the one that writes. Without an error it has been sent, or will be.
func (c *Client) send(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.why(); err != nil {
		return err
	}
	select {
	case c.sends <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.gone:
		return c.why()
	}
}

// call makes a request that has one answer. sent says that it has been sent, or may have been.
func (c *Client) call(ctx context.Context, r *request) (a *answer, sent bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.silent, errSilent)
	defer cancel()
	a, sent, err = c.ask(ctx, r)
	if a == nil && err != nil && context.Cause(ctx) == errSilent {
		err = errSilent
	}
	return a, sent, err
}

func (c *Client) ask(ctx context.Context, r *request) (a *answer, sent bool, err error) {
	answers := make(chan *answer, 1)
	c.expect(r, func(a *answer) { answers <- a })
	defer c.forget(r)
	if err := c.send(ctx, r); err != nil {
		return nil, false, err
	}
	select {
	case a := <-answers:
		return a, true, a.Fault.error()
	case <-ctx.Done():
		return nil, true, ctx.Err()
	case <-c.gone:
	}
	select {
	case a := <-answers: // it came first
		return a, true, a.Fault.error()
	default:
		return nil, true, c.why()
	}
}

// Limits returns what a transaction may hold.
func (c *Client) Limits() kvqueue.Limits { return c.limits }

// Read reads ranges at one revision.
func (c *Client) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	sent := make([]kvqueue.Range, len(ranges))
	for i, r := range ranges {
		r.Begin, r.End = bounds(r.Begin, r.End)
		sent[i] = r
	}
	a, _, err := c.call(ctx, &request{Op: opRead, Ranges: sent})
	if err != nil {
		return nil, 0, err
	}
	return a.Results, a.Rev, nil
}

// Commit does all writes if every guard holds.
func (c *Client) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	r := &request{Op: opCommit, Guards: make([]kvqueue.Guard, len(guards)), Writes: make([]write, len(writes))}
	for i, g := range guards {
		g.Key, g.End = bounds(g.Key, g.End)
		r.Guards[i] = g
	}
	for i, w := range writes {
		r.Writes[i] = write{Key: w.Key, Value: w.Value, Delete: w.Delete}
		if w.Session == nil {
			continue
		}
		own, ok := w.Session.(*session)
		if !ok || own.c != c {
			return 0, fmt.Errorf("%w: a key is put with a session of another store", kvqueue.ErrConflict)
		}
		r.Writes[i].Session = own.id
	}
	a, sent, err := c.call(ctx, r)
	switch {
	case a != nil:
		return a.Rev, err
	case sent:
		return 0, fmt.Errorf("%w: %w", kvqueue.ErrUnknown, err)
	}
	return 0, err
}

// Session begins a session.
func (c *Client) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	a, _, err := c.call(ctx, &request{Op: opSession, TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &session{c, a.Session}, nil
}

// A session is one of the process that has the file.
type session struct {
	c  *Client
	id int64
}

func (s *session) ID() int64 { return s.id }

func (s *session) Renew(ctx context.Context) error {
	_, _, err := s.c.call(ctx, &request{Op: opRenew, Session: s.id})
	return err
}

func (s *session) End(ctx context.Context) error {
	_, _, err := s.c.call(ctx, &request{Op: opEnd, Session: s.id})
	return err
}

// Watch yields changes.
func (c *Client) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		r := &request{Op: opWatch, After: after, Prefixes: prefixes}
		arriving := &arriving{bell: make(chan struct{}, 1)}
		c.expect(r, arriving.add)
		defer c.forget(r)
		if err := c.send(ctx, r); err != nil {
			if ctx.Err() == nil {
				yield(kvqueue.Event{}, err)
			}
			return
		}
		defer c.unwatch(r)
		for {
			events, err := arriving.next(ctx, c)
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(kvqueue.Event{}, err)
				}
				return
			}
		}
	}
}

// mostWaiting is how many changes wait for a watch that does not take them; then it has to
// list anew.
const mostWaiting = 65536

// arriving are the changes that one watch has not taken yet.
type arriving struct {
	bell chan struct{} // of size 1: there is something to take

	mu     sync.Mutex
	events []kvqueue.Event
	err    error // how it ends
}

func (w *arriving) add(a *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
	case a.Event == nil:
		w.err = a.Fault.error()
	case len(w.events) == mostWaiting:
		w.events, w.err = nil, kvqueue.ErrCompacted
	default:
		w.events = append(w.events, *a.Event)
	}
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// next waits for changes. With an error it returns the last ones.
func (w *arriving) next(ctx context.Context, c *Client) (events []kvqueue.Event, err error) {
	select {
	case <-w.bell:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.gone:
		err = c.why()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events, w.events = w.events, nil
	if w.err != nil {
		err = w.err
	}
	return events, err
}
