// Package mask keeps secrets out of what is written.
package mask

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"sync"
)

// MinLen is how many bytes a secret must have. A shorter one would be found all
// over the output, and its mask would tell what it is.
const MinLen = 4

// Mask is what stands in the place of a secret.
const Mask = "[MASKED]"

// A Writer passes on what is written to it, with a mask in the place of each
// secret, in whatever pieces that comes. It holds back only an end that a secret
// may begin with, until more comes or [Writer.Flush]. Goroutines may share it.
type Writer struct {
	w       io.Writer
	secrets [][]byte // the longest first: one may be a part of another

	mu   sync.Mutex
	held []byte
}

// New returns a writer that hides secrets. Those that are shorter than MinLen are
// not hidden.
func New(w io.Writer, secrets []string) *Writer {
	m := &Writer{w: w}
	for _, s := range secrets {
		if len(s) >= MinLen {
			m.secrets = append(m.secrets, []byte(s))
		}
	}
	slices.SortFunc(m.secrets, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	return m
}

// Text returns a text with a mask in the place of each secret.
func Text(s string, secrets []string) string {
	var b strings.Builder
	w := New(&b, secrets)
	_, _ = io.WriteString(w, s) // a Builder takes everything
	_ = w.Flush()
	return b.String()
}

// Whole returns a writer that hides secrets in each text that is written to it. It holds nothing back: a secret is not
// to come in pieces.
func Whole(w io.Writer, secrets []string) io.Writer {
	if len(secrets) == 0 {
		return w
	}
	return &whole{w, secrets}
}

type whole struct {
	w       io.Writer
	secrets []string
}

func (m *whole) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.w, Text(string(p), m.secrets)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Error returns an error that is err, with a text in which secrets are hidden.
func Error(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	if text := Text(err.Error(), secrets); text != err.Error() {
		return &hidden{err, text}
	}
	return err
}

type hidden struct {
	err  error
	text string
}

func (e *hidden) Error() string { return e.text }

// Unwrap returns the error without a mask.
func (e *hidden) Unwrap() error { return e.err }

// Write passes p on, but for the end that is held back. Its error is that of the
// writer below.
func (m *Writer) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := append(m.held, p...)
	out, rest := m.hide(data, false)
	m.held = slices.Clone(rest)
	if len(out) > 0 {
		if _, err := m.w.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush passes on what is held back.
func (m *Writer) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, _ := m.hide(m.held, true)
	m.held = nil
	if len(out) == 0 {
		return nil
	}
	_, err := m.w.Write(out)
	return err
}

// hide returns data with the secrets masked, and the end that is to wait for more
// unless this is the last.
func (m *Writer) hide(data []byte, last bool) (out, rest []byte) {
	for i := 0; i < len(data); {
		n, waits := m.secretAt(data[i:])
		switch {
		case waits && !last:
			return out, data[i:]
		case n > 0:
			out = append(out, Mask...)
			i += n
		default:
			out = append(out, data[i])
			i++
		}
	}
	return out, nil
}

// secretAt returns the length of the longest secret that data begins with. waits
// says that a longer one may be there when more has come.
func (m *Writer) secretAt(data []byte) (n int, waits bool) {
	for _, s := range m.secrets {
		if bytes.HasPrefix(data, s) {
			return len(s), waits
		}
		if len(data) < len(s) && bytes.HasPrefix(s, data) {
			waits = true
		}
	}
	return 0, waits
}
