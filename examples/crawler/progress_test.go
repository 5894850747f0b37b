package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// showFor runs p's display for d, while found and visited links arrive.
func showFor(t *testing.T, p *progress, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for range 2500 {
		p.queued()
	}
	for range 1200 {
		p.visited(1000)
	}
	require.NoError(t, p.show(ctx))
}

func TestProgressIsALineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		showFor(t, newProgress(&out), 2500*time.Millisecond)
		assert.Equal(t, "crawler: 1,200 of 2,500 links visited so far, 1.2 MB, 1,200 a second\n"+
			"crawler: 1,200 of 2,500 links visited so far, 1.2 MB, 600 a second\n", out.String())
	})
}

func TestProgressOnATerminalIsABarThatIsWipedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		showFor(t, &progress{out: &out, terminal: true}, 2500*time.Millisecond)
		frames := strings.Split(strings.TrimPrefix(out.String(), "\r"), "\r")
		require.GreaterOrEqual(t, len(frames), 12, "five a second")
		assert.Contains(t, frames[0], "1200 / 2500")
		assert.NotContains(t, out.String(), "\n")
		assert.Empty(t, strings.TrimSpace(frames[len(frames)-2]))
		assert.Empty(t, frames[len(frames)-1], "the cursor stands at the start of the line")
	})
}

func TestProgressIsABarOnTerminalsOnly(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, newProgress(file).terminal)
	assert.False(t, newProgress(new(bytes.Buffer)).terminal)
}
