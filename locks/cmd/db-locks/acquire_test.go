package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gone is an output that nobody reads any more.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAnAcquireThatNobodyWasToldOfIsGivenBack(t *testing.T) {
	s := newSession(t)
	for _, options := range []string{"-k mutex", "-k pool -s 3"} {
		for range 4 { // more than the semaphore has
			err := run(context.Background(), &program{
				args: strings.Fields("acquire --no-wait " + options), env: func(name string) string { return s.env[name] },
				stdin: strings.NewReader(""), stdout: gone{}, stderr: os.Stderr,
			})
			require.True(t, errors.Is(err, io.ErrClosedPipe), "%v", err)
		}
	}
}
