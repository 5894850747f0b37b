//go:build unix

package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A pump carries output from a pipe to a writer.
type pump struct {
	stream string
	r      *os.File
	w      io.Writer
	fail   func(error) // told the first error of w

	done *async.Future[pumped]
}

// pumped is how a pump has ended.
type pumped struct {
	held bool  // somebody keeps the pipe open
	err  error // of the writer
}

// connect gives cmd its output: files as they are, for each other writer a pipe,
// of which the ends that are the command's are returned, too.
func (p *process) connect(cmd *exec.Cmd) (theirs []*os.File, err error) {
	add := func(stream string, w io.Writer) (*os.File, error) {
		r, end, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.pumps = append(p.pumps, &pump{stream: stream, r: r, w: w, fail: p.fail})
		theirs = append(theirs, end)
		return end, nil
	}
	plain := func(w io.Writer) bool { _, file := w.(*os.File); return w == nil || file }
	switch out, errs := p.c.Stdout, p.c.Stderr; {
	case !plain(out) && same(out, errs):
		f, err := add("output", out)
		if err != nil {
			return theirs, err
		}
		cmd.Stdout, cmd.Stderr = f, f
	default:
		cmd.Stdout, cmd.Stderr = out, errs
		if !plain(out) {
			if cmd.Stdout, err = add("stdout", out); err != nil {
				return theirs, err
			}
		}
		if !plain(errs) {
			if cmd.Stderr, err = add("stderr", errs); err != nil {
				return theirs, err
			}
		}
	}
	return theirs, nil
}

// same reports whether two writers are one. Writers need not be comparable.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

// start begins to carry. Every pump ends: the pipe does, or it has expired, or
// it is abandoned.
func (u *pump) start() {
	u.done = async.Execute(home, u.run, async.Name(u.stream))
}

// run carries until the pipe ends. What cannot be written is thrown away, so
// that the command does not wait for a reader, and can end as it likes.
func (u *pump) run(ctx context.Context) (pumped, error) {
	defer func() { _ = u.r.Close() }()
	// As a task of its own, whose panic is an error here.
	held, err := async.Execute(ctx, func(ctx context.Context) (bool, error) {
		return u.carry(ctx, u.w)
	}, async.Name(u.stream)).Wait(ctx)
	if err == nil || ctx.Err() != nil {
		return pumped{held: held}, err
	}
	lost := &OutputError{u.stream, err}
	u.fail(lost)
	held, err = u.carry(ctx, io.Discard)
	return pumped{held, lost}, err
}

// carry writes to w what comes until the pipe ends or expires, and reports
// whether somebody keeps it open. It fails if w does, or ctx is done.
func (u *pump) carry(ctx context.Context, w io.Writer) (held bool, err error) {
	buf := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := u.r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return false, err
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return u.rest(ctx, w, buf)
		}
		if err != nil {
			return false, nil // the end of the pipe
		}
	}
	return false, context.Cause(ctx)
}

// expire has run end when d has passed, and what is in the pipe then is read.
func (u *pump) expire(d time.Duration) {
	_ = u.r.SetReadDeadline(time.Now().Add(d))
}

// rest writes to w what is in the pipe, without waiting for more. A deadline
// keeps Read from looking at all.
func (u *pump) rest(ctx context.Context, w io.Writer, buf []byte) (held bool, err error) {
	const most = 1 << 20 // what a pipe holds at most; whoever writes on is not followed
	raw, err := u.r.SyscallConn()
	if err != nil {
		return true, nil
	}
	for total := 0; total < most && ctx.Err() == nil; {
		var n int
		var failed error
		if raw.Control(func(fd uintptr) { n, failed = syscall.Read(int(fd), buf) }) != nil {
			return true, nil
		}
		switch {
		case failed == syscall.EINTR:
			continue
		case failed != nil:
			return true, nil // nothing is there
		case n == 0:
			return false, nil
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return true, err
		}
		total += n
	}
	return true, context.Cause(ctx)
}
