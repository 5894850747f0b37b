//go:build unix

package proc

import (
	"bytes"
	"sync"
)

// A sign is an output that tells when a line "ready" has come.
type sign struct {
	ready chan struct{} // closed at "ready"

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func newSign() *sign { return &sign{ready: make(chan struct{})} }

func (s *sign) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if bytes.Contains(s.text.Bytes(), []byte("ready\n")) {
		s.once.Do(func() { close(s.ready) })
	}
	return len(p), nil
}

func (s *sign) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// must is for programs of helpers.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
