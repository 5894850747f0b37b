//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A frame takes longer than the silence that is allowed, and is never silent so
// long: one connection is enough.
func TestAFrameThatTricklesIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frame = "DATA 0 20\n01234567890123456789END 20\n"
		var got strings.Builder
		f := &follower{
			emit:     func(p []byte) error { got.Write(p); return nil },
			report:   func(string, ...any) {},
			pause:    func(int) time.Duration { return time.Second },
			attempts: 1,
			silence:  time.Second,
			dial: func(context.Context) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					_, _ = readRequest(bufio.NewReader(theirs))
					for i := range len(frame) {
						time.Sleep(900 * time.Millisecond)
						if _, err := io.WriteString(theirs, frame[i:i+1]); err != nil {
							return
						}
					}
				}()
				return ours, nil
			},
		}
		require.NoError(t, f.follow(t.Context()))
		assert.Equal(t, "01234567890123456789", got.String())
		assert.Equal(t, 1, f.conns)
	})
}

func TestAFrameHasNothingBehindIt(t *testing.T) {
	for _, line := range []string{"DATA 0 3 junk\n", "END 3 junk\n", "DATA 0\n"} {
		_, err := readFrame(bufio.NewReader(strings.NewReader(line)))
		assert.ErrorAs(t, err, new(*wrongError), line)
	}
}
