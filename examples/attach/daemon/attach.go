//go:build unix

package daemon

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/attach/frame"
)

// attach turns the connection of a request into the input and the output of a
// container: plain bytes one way, frames the other.
func (d *Daemon) attach(w http.ResponseWriter, r *http.Request) error {
	c, err := d.find(r)
	if err != nil {
		return err
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok || r.Header.Get("Upgrade") != "tcp" {
		return refuse(http.StatusBadRequest, "attach needs the headers Connection: Upgrade and Upgrade: tcp")
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx := r.Context() // still that of the scope: a hijacked connection does not end it
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := c.attachTo(conn, frame.NewMux(d.line(conn))); err != nil {
		return nil // the client has gone
	}
	d.carry(ctx, c, conn.(*net.UnixConn), input(conn, buffered.Reader))
	return nil
}

// input reads what package http has read ahead, and then the connection itself:
// to read on through package http would cancel the context of the request at
// the end of the input, and the output is not over then.
func input(conn net.Conn, ahead *bufio.Reader) io.Reader {
	return io.MultiReader(io.LimitReader(ahead, int64(ahead.Buffered())), conn)
}

// line is what frames are written to.
func (d *Daemon) line(conn net.Conn) io.Writer {
	if d.Flaw == Cut {
		return &cutter{conn: conn, left: 64 << 10}
	}
	return conn
}

// attachTo sends the output of the command to a client from now on. The answer
// goes before every frame, and no output is missed by whoever has it.
func (c *container) attachTo(conn net.Conn, mux *frame.Mux) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+
		"Content-Type: application/vnd.docker.multiplexed-stream\r\n"+
		"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	if err == nil {
		c.out, c.errs = mux.Stream(frame.Stdout), mux.Stream(frame.Stderr)
	}
	return err
}

// carry is attach once the connection is hijacked. It returns when the command
// has ended and the client has hung up.
func (d *Daemon) carry(ctx context.Context, c *container, conn *net.UnixConn, input io.Reader) {
	_ = async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { d.feed(c, input); return nil }, async.Name("input"))
		if _, err := c.exited.Wait(ctx); err != nil {
			return err // the daemon ends
		}
		switch d.Flaw {
		case NoEnd:
			<-ctx.Done()
		case Hasty:
			_ = conn.Close()
			c.leave.Resolve(struct{}{})
		}
		_ = conn.CloseWrite() // fails if the client has gone
		return nil
	})
}

// feed copies input to the command, to its end. What the command does not take
// is read all the same: to close a connection with input in it would break off
// what the client has still to read.
func (d *Daemon) feed(c *container, input io.Reader) {
	_, _ = io.Copy(writerFunc(func(p []byte) (int, error) {
		if _, err := c.input.Write(p); err != nil && d.Flaw == Hasty {
			return 0, err
		}
		return len(p), nil
	}), input)
	_ = c.input.Close()
}

// A cutter closes a connection in the middle of a frame.
type cutter struct {
	mu   sync.Mutex
	conn net.Conn
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) < c.left {
		c.left -= len(p)
		return c.conn.Write(p)
	}
	n, _ := c.conn.Write(p[:len(p)/2])
	c.left = 0
	_ = c.conn.Close()
	return n, net.ErrClosed
}
