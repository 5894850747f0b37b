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

// A wrongError says that the other side does not speak as above, or has said
// that it cannot help. To connect again would not change that.
type wrongError struct{ text string }

func (e *wrongError) Error() string { return e.text }

func writeRequest(w io.Writer, offset int64) error {
	_, err := fmt.Fprintf(w, "FROM %d\n", offset)
	return err
}

func readRequest(r *bufio.Reader) (offset int64, err error) {
	line, err := readLine(r)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(line, "FROM %d\n", &offset); err != nil || offset < 0 {
		return 0, &wrongError{fmt.Sprintf("the client says %q", line)}
	}
	return offset, nil
}

// writeData writes a frame with its bytes in one Write.
func writeData(w io.Writer, offset int64, p []byte) error {
	_, err := w.Write(append(fmt.Appendf(nil, "DATA %d %d\n", offset, len(p)), p...))
	return err
}

func writeEnd(w io.Writer, size int64) error {
	_, err := fmt.Fprintf(w, "END %d\n", size)
	return err
}

func readFrame(r *bufio.Reader) (frame, error) {
	line, err := readLine(r)
	if err != nil {
		return frame{}, err
	}
	f := frame{kind: "DATA"}
	if _, err := fmt.Sscanf(line, "DATA %d %d\n", &f.offset, &f.length); err == nil && f.offset >= 0 && f.length >= 0 {
		return f, nil
	}
	f = frame{kind: "END"}
	if _, err := fmt.Sscanf(line, "END %d\n", &f.offset); err == nil && f.offset >= 0 {
		return f, nil
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
