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
	held bool  // it was told to stop before the pipe was at its end
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

// start begins to carry. Every pump ends: the pipe does, or after expire, or it
// is abandoned.
func (u *pump) start() {
	u.done = async.Execute(home, u.run, async.Name(u.stream))
}

// run carries until the pipe ends. What cannot be written is thrown away, so
// that the command does not wait for a reader, and can end as it likes.
func (u *pump) run(ctx context.Context) (pumped, error) {
	defer func() { _ = u.r.Close() }()
	var end pumped
	buf := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := u.r.Read(buf)
		end.write(ctx, u, buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			end.held = !u.rest(ctx, &end, buf)
			break
		}
		if err != nil {
			break // the end of the pipe
		}
	}
	return end, nil
}

// write passes output on, unless that has failed before.
func (end *pumped) write(ctx context.Context, u *pump, data []byte) {
	if len(data) == 0 || end.err != nil || ctx.Err() != nil {
		return
	}
	if _, err := u.w.Write(data); err != nil {
		end.err = &OutputError{u.stream, err}
		u.fail(end.err)
	}
}

// expire has run end when d has passed, and what is in the pipe then is read.
func (u *pump) expire(d time.Duration) {
	_ = u.r.SetReadDeadline(time.Now().Add(max(d, 0)))
}

// rest reads what is in the pipe, without waiting for more, and reports whether
// that was the end. A deadline keeps Read from looking at all.
func (u *pump) rest(ctx context.Context, end *pumped, buf []byte) (eof bool) {
	const most = 1 << 20 // what a pipe holds at most; whoever writes on is not followed
	raw, err := u.r.SyscallConn()
	if err != nil {
		return false
	}
	for total := 0; total < most && ctx.Err() == nil; {
		var n int
		var err error
		if raw.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), buf) }) != nil {
			return false
		}
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return false // nothing is there
		case n == 0:
			return true
		}
		end.write(ctx, u, buf[:n])
		total += n
	}
	return false
}
