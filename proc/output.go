//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A pump carries output from a pipe to a writer.
type pump struct {
	stream string
	r      *os.File
	w      io.Writer
	fail   context.CancelCauseFunc // told the first error of w

	abandoned atomic.Bool // nobody waits for it any more
	done      *async.Future[pumped]
}

// pumped is how a pump has ended.
type pumped struct {
	held bool  // somebody keeps the pipe open
	err  error // of the writer
}

// connect gives cmd its input and output: files as they are, for each other
// reader and writer a pipe. The ends of pipes that are the command's are returned,
// also with an error.
func (p *process) connect(cmd *exec.Cmd) (theirs []*os.File, err error) {
	pipe := func(ours func(r, w *os.File) (their *os.File)) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		their := ours(r, w)
		theirs = append(theirs, their)
		return their, nil
	}
	output := func(stream string, w io.Writer) (io.Writer, error) {
		if f, file := w.(*os.File); w == nil || file {
			return fileWriter(f), checkOpen(stream, f)
		}
		return pipe(func(r, end *os.File) *os.File {
			p.pumps = append(p.pumps, &pump{stream: stream, r: r, w: w, fail: p.fail})
			return end
		})
	}
	if f, file := p.c.Stdin.(*os.File); p.c.Stdin == nil || file {
		cmd.Stdin, err = fileReader(f), checkOpen("stdin", f)
		if err != nil {
			return nil, err
		}
	} else if cmd.Stdin, err = pipe(func(end, w *os.File) *os.File {
		p.feed = &feed{r: p.c.Stdin, w: w, fail: p.fail}
		return end
	}); err != nil {
		return theirs, err
	}
	if same(p.c.Stdout, p.c.Stderr) {
		cmd.Stdout, err = output("output", p.c.Stdout)
		cmd.Stderr = cmd.Stdout
		return theirs, err
	}
	if cmd.Stdout, err = output("stdout", p.c.Stdout); err == nil {
		cmd.Stderr, err = output("stderr", p.c.Stderr)
	}
	return theirs, err
}

// checkOpen fails if f, which may be nil, is closed. The command would be started
// without it, and what it writes lost in silence.
func checkOpen(stream string, f *os.File) error {
	if f == nil {
		return nil
	}
	raw, err := f.SyscallConn()
	if err == nil && raw.Control(func(uintptr) {}) == nil {
		return nil
	}
	return fmt.Errorf("%s is %s, which cannot be given to the command: %w", stream, f.Name(), os.ErrClosed)
}

// fileWriter and fileReader return f, or nil: an interface that holds nothing is
// not nil.
func fileWriter(f *os.File) io.Writer {
	if f == nil {
		return nil
	}
	return f
}

func fileReader(f *os.File) io.Reader {
	if f == nil {
		return nil
	}
	return f
}

// disconnect closes our ends of the pipes of a command that was not started.
func (p *process) disconnect() {
	for _, u := range p.pumps {
		_ = u.r.Close()
	}
	if p.feed != nil {
		_ = p.feed.w.Close()
	}
}

// drain ends the input, waits for the pumps, and ends those that wait for
// somebody outside the group or for a writer.
func (p *process) drain() {
	if p.feed != nil {
		p.lose(p.feed.end())
	}
	wait := p.c.Linger
	if p.result.Survived {
		wait = 0
	}
	var ends []*async.Future[pumped]
	for _, u := range p.pumps {
		u.expire(wait)
		defer context.AfterFunc(p.patience, func() { u.expire(0) })()
		ends = append(ends, u.done)
	}
	for i, r := range async.AwaitAll(home, wait+p.c.GiveUp, ends...) {
		u := p.pumps[i]
		u.abandoned.Store(true)
		p.result.Held = p.result.Held || r.Value.held
		if r.Err != nil {
			r.Value.err = &OutputError{u.stream, ErrStuck}
		}
		p.lose(r.Value.err)
	}
}

// lose notes that something was lost, unless it is why the command was stopped,
// which is told as that.
func (p *process) lose(err error) {
	if err != p.result.Cause {
		p.lost = join(p.lost, err)
	}
}

// start begins to carry. Every pump ends: the pipe does, or it has expired, or
// it is abandoned and its writer has returned.
func (u *pump) start() {
	u.done = async.Execute(home, u.run, async.Name(u.stream))
}

// run carries until the pipe ends. Output that cannot be written is thrown away, so
// that the command does not wait for a reader, and can end as it likes.
func (u *pump) run(context.Context) (pumped, error) {
	defer func() { _ = u.r.Close() }()
	// As a task of its own, whose panic is an error here.
	held, err := async.Execute(home, func(context.Context) (bool, error) {
		held, err := u.carry(u.w)
		if lines, ok := u.w.(*LineWriter); ok && err == nil {
			err = lines.Close()
		}
		return held, err
	}, async.Name(u.stream)).Join(home)
	if err == nil {
		return pumped{held: held}, nil
	}
	lost := &OutputError{u.stream, err}
	u.fail(lost)
	held, _ = u.carry(io.Discard)
	return pumped{held, lost}, nil
}

// carry writes to w what comes until the pipe ends or expires, and reports
// whether somebody keeps it open. It fails if w does.
func (u *pump) carry(w io.Writer) (held bool, err error) {
	buf := make([]byte, 32<<10)
	for !u.abandoned.Load() {
		n, err := u.r.Read(buf)
		if n > 0 {
			if err := write(w, buf[:n]); err != nil {
				return false, err
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return u.rest(w, buf)
		}
		if err != nil {
			return false, nil // the end of the pipe
		}
	}
	return true, nil
}

// write has w take all of b.
func write(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		return io.ErrShortWrite
	}
	return err
}

// expire has carry end when d has passed, and what is in the pipe then is read.
func (u *pump) expire(d time.Duration) {
	_ = u.r.SetReadDeadline(time.Now().Add(d))
}

// rest writes to w what is in the pipe, without waiting for more. A deadline
// keeps Read from looking at all.
func (u *pump) rest(w io.Writer, buf []byte) (held bool, err error) {
	const most = 1 << 20 // what a pipe holds at most; whoever writes on is not followed
	raw, err := u.r.SyscallConn()
	if err != nil {
		return true, nil
	}
	for total := 0; total < most && !u.abandoned.Load(); {
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
		if err := write(w, buf[:n]); err != nil {
			return true, err
		}
		total += n
	}
	return true, nil
}
