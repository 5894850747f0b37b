// Package frame carries the output and the errors of a process over one
// connection, in the frames of Docker's attach: a byte for the stream, three
// zeros, the length of the payload in four bytes, most significant first, and
// the payload.
package frame

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// A Stream is whose payload a frame holds.
type Stream byte

// The streams. A frame of System is a message of the daemon about itself.
const (
	Stdout Stream = 1
	Stderr Stream = 2
	System Stream = 3
)

const (
	header  = 8
	payload = 32 << 10 // written at most in one frame
	message = 4 << 10  // read at most of a frame of System
)

// A Mux writes frames. Its streams may be used by several goroutines at once.
type Mux struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewMux returns a Mux that writes to w, each frame in one Write.
func NewMux(w io.Writer) *Mux { return &Mux{w: w} }

// Stream returns a writer of one stream.
func (m *Mux) Stream(s Stream) io.Writer { return &stream{m, s} }

type stream struct {
	m *Mux
	s Stream
}

func (s *stream) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), payload)]
		if err := s.m.write(s.s, part); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

func (m *Mux) write(s Stream, p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buf = append(m.buf[:0], byte(s), 0, 0, 0)
	m.buf = binary.BigEndian.AppendUint32(m.buf, uint32(len(p)))
	m.buf = append(m.buf, p...)
	_, err := m.w.Write(m.buf)
	return err
}

// A SystemError is a message of the daemon in place of output.
type SystemError struct{ Message string }

func (e *SystemError) Error() string { return "the daemon says: " + e.Message }

// Copy reads frames from r to its end and writes their payload to stdout and
// stderr. A payload goes on as it comes, not when the frame is complete, and
// lengths are not believed: whatever r holds, Copy needs little memory.
//
// It returns nil if r ends between two frames, io.ErrUnexpectedEOF if it ends
// within one, a *SystemError for a message of the daemon, or the first error of
// r or of a writer.
func Copy(stdout, stderr io.Writer, r io.Reader) error {
	var head [header]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		length := int64(binary.BigEndian.Uint32(head[4:]))
		var dst io.Writer
		switch Stream(head[0]) {
		case Stdout:
			dst = stdout
		case Stderr:
			dst = stderr
		case System:
			text, err := io.ReadAll(io.LimitReader(r, min(length, message)))
			if err != nil {
				return err
			}
			return &SystemError{string(text)}
		default:
			return fmt.Errorf("a frame of stream %d: this is no framed connection", head[0])
		}
		if _, err := io.CopyN(dst, r, length); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
}
