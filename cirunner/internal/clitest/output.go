package clitest

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Sign is an output that tells when a line "ready" has come.
type Sign struct {
	Ready chan struct{} // closed at "ready"

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

// NewSign returns an output that nothing has been written to.
func NewSign() *Sign { return &Sign{Ready: make(chan struct{})} }

// Write adds to the output.
func (s *Sign) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if bytes.Contains(s.text.Bytes(), []byte("ready\n")) {
		s.once.Do(func() { close(s.Ready) })
	}
	return len(p), nil
}

// String returns what has come so far.
func (s *Sign) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Number returns the number in the first line of output that is word and a
// number: the process id that a script has printed, say. It fails the test if
// there is none.
func Number(t testing.TB, output, word string) int {
	t.Helper()
	for line := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %q with a number in %q", word, output)
	return 0
}

// Eventually waits until holds returns true, and fails the test if that has not
// come after a minute: what takes so long hangs.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	_, err := async.Poll(t.Context(), async.Every(2*time.Millisecond), func(context.Context) (struct{}, bool, error) {
		return struct{}{}, holds(), nil
	}).Await(t.Context(), time.Minute)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
