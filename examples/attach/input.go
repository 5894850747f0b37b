//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// An input is a file that can be read without waiting for good. To close a
// terminal, or a pipe that another process has given, does not wake up whoever
// reads it. So an input waits, by poll(2), for the file or for a pipe of its
// own, and reads when there is something. A reader that is not a file is read
// as it is.
type input struct {
	io.Reader
	file         *os.File // nil if it is not a file
	wake, giving *os.File // the two ends of the pipe
}

func newInput(r io.Reader) (*input, error) {
	in := &input{Reader: r}
	var ok bool
	if in.file, ok = r.(*os.File); !ok {
		return in, nil
	}
	var err error
	in.wake, in.giving, err = os.Pipe()
	return in, err
}

// giveUp has Read return, now and from now on. It may be called at any time, by
// any goroutine.
func (i *input) giveUp() {
	if i.giving != nil {
		_ = i.giving.Close() // the end of the pipe can be read for ever
	}
}

// close frees what the input holds; the file stays open. Nobody may read any
// more.
func (i *input) close() {
	i.giveUp()
	if i.wake != nil {
		_ = i.wake.Close()
	}
}

// Read reads, or returns os.ErrDeadlineExceeded if it was given up.
func (i *input) Read(p []byte) (int, error) {
	if i.file == nil {
		return i.Reader.Read(p)
	}
	fds := []unix.PollFd{
		{Fd: int32(i.file.Fd()), Events: unix.POLLIN},
		{Fd: int32(i.wake.Fd()), Events: unix.POLLIN},
	}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return 0, os.ErrDeadlineExceeded
		default:
			return i.file.Read(p)
		}
	}
}
