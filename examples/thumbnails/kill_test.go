package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

const (
	rounds   = 4 // of each kind
	subjects = 8 // pictures
)

// The program is stopped again and again, after a random number of steps. What
// is there under a thumbnail's name is whole each time, and in the end there is
// a thumbnail of everything.
func TestNoHalfWrittenThumbnailWhateverStopsTheProgram(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	for round := range 2 * rounds {
		for i := range subjects {
			pictureIn(t, folder, subject(i), 200+i, 150+round, round+i)
		}
		p := clitest.Start(t, nil, "thumbnails", "-once", "-v", "-size", "1024", "-out", out, folder)
		// All are queued, and some number of steps later:
		follow(t, p, "queued", subjects, rand.IntN(2*subjects))
		if round%2 == 0 {
			interrupt(t, p, folder, out)
		} else {
			p.Signal(syscall.SIGKILL)
			p.Wait()
		}
		for _, name := range filesIn(t, out) {
			if strings.HasSuffix(name, thumbnailSuffix) {
				decoded(t, filepath.Join(out, name))
			}
		}
	}
	p := clitest.Start(t, nil, "thumbnails", "-once", "-out", out, folder)
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.Len(t, filesIn(t, out), subjects, "and what was left by a kill is gone")
	for i := range subjects {
		assert.True(t, upToDate(folder, out, subject(i)), subject(i))
	}
}

func subject(i int) string {
	return fmt.Sprintf("picture-%d%s", i, []string{".jpg", ".png", ".gif"}[i%3])
}

// follow reads what the program prints until so many lines hold text, and so many
// more have come after those.
func follow(t *testing.T, p *clitest.Process, text string, lines, more int) {
	t.Helper()
	for lines > 0 {
		if strings.Contains(p.WaitFor(": "), text) {
			lines--
		}
	}
	for range more {
		if strings.HasPrefix(p.WaitFor(""), "the queue") {
			return // it was done before
		}
	}
}

// interrupt stops the program with Ctrl-C. Each picture has its thumbnail then, or
// is listed, and there is no other file.
func interrupt(t *testing.T, p *clitest.Process, folder, out string) {
	t.Helper()
	p.Signal(os.Interrupt)
	code := p.Wait()
	if code == 0 {
		assert.NotContains(t, p.Stdout(), "unfinished", "it was done before")
	} else {
		require.Equal(t, 130, code, p.Stderr())
	}
	_, unfinished, _ := strings.Cut(p.Stdout(), "\nunfinished: ")
	unfinished, _, _ = strings.Cut(unfinished, "\n\n")
	for i := range subjects {
		listed := strings.Contains(unfinished, "\n  "+subject(i)+": ")
		assert.NotEqual(t, upToDate(folder, out, subject(i)), listed, "%s has a thumbnail, or is listed:\n%s", subject(i), p.Stdout())
	}
	for _, name := range filesIn(t, out) {
		assert.False(t, strings.HasPrefix(name, "."), name)
	}
}
