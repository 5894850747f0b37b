package clitest

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// Number returns the number in the first line of output that is word and a number, as a script prints its process id.
//
//	pid := clitest.Number(t, p.Stdout(), "pid")
//
// # Details
//
// It fails the test if there is none.
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

// Eventually waits until holds returns true, and fails the test if that has not come after a minute.
//
//	clitest.Eventually(t, "the group has ended", func() bool { return len(clitest.InGroup(t, pid)) == 0 })
//
// # Details
//
// It starts no goroutine: holds is called on the caller's. In tests with a scope asynctest.Eventually shows the
// tree besides.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("has not come: %s", what)
		}
	}
}
