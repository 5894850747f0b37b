//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// What is said over a connection. The client says once where it wants to begin:
//
//	FROM offset
//
// The server answers with frames, each a line that for DATA is followed by bytes
// of the log:
//
//	DATA offset length    these bytes, the first of which has this offset
//	END size              that was all, and this is how much it is
//	ERROR text            it will never be any better
//
// Every DATA says where it belongs, so a server may begin before the offset it
// was asked for, as one that only knows blocks or lines has to. A DATA of length
// 0 says that the server is there. END is what tells the end of the log from
// that of a connection.

// A frame is the line that begins one.
type frame struct {
	kind   string // DATA or END
	offset int64
	length int64 // of DATA
}

// line is the frame as it is written.
func (f frame) line() string {
	if f.kind == "DATA" {
		return fmt.Sprintf("DATA %d %d\n", f.offset, f.length)
	}
	return fmt.Sprintf("%s %d\n", f.kind, f.offset)
}

// A wrongError says that the other side does not speak as above, or has said
// that it cannot help. To connect again would not change that.
type wrongError struct{ text string }

func (e *wrongError) Error() string { return e.text }

func requestLine(offset int64) string { return fmt.Sprintf("FROM %d\n", offset) }

func writeRequest(w io.Writer, offset int64) error {
	_, err := io.WriteString(w, requestLine(offset))
	return err
}

func readRequest(r *bufio.Reader) (offset int64, err error) {
	line, err := readLine(r)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(line, "FROM %d", &offset); err != nil || offset < 0 || line != requestLine(offset) {
		return 0, &wrongError{fmt.Sprintf("the client says %q", line)}
	}
	return offset, nil
}

// writeData writes a frame with its bytes in one Write.
func writeData(w io.Writer, offset int64, p []byte) error {
	_, err := w.Write(append([]byte(frame{"DATA", offset, int64(len(p))}.line()), p...))
	return err
}

func writeEnd(w io.Writer, size int64) error {
	_, err := io.WriteString(w, frame{kind: "END", offset: size}.line())
	return err
}

// readFrame reads a line that begins a frame. Only one that is written just so is
// one: the other side may mean something else by another.
func readFrame(r *bufio.Reader) (frame, error) {
	line, err := readLine(r)
	if err != nil {
		return frame{}, err
	}
	data, end := frame{kind: "DATA"}, frame{kind: "END"}
	_, notData := fmt.Sscanf(line, "DATA %d %d", &data.offset, &data.length)
	_, notEnd := fmt.Sscanf(line, "END %d", &end.offset)
	switch {
	case notData == nil && data.line() == line && data.offset >= 0 && data.length >= 0:
		return data, nil
	case notEnd == nil && end.line() == line && end.offset >= 0:
		return end, nil
	}
	return frame{}, &wrongError{fmt.Sprintf("the server says %q", line)}
}

// readLine reads a line that is no longer than the buffer of r. One that ends
// before its newline was cut off: what is there of it means nothing.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", &wrongError{fmt.Sprintf("the other side speaks something else: %.40q...", line)}
	case err != nil:
		return "", err
	}
	return string(line), nil
}
