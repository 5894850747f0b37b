//go:build unix

package view

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/view/viewtest"
)

func TestTheScreenReplacesTheTreeAndKeepsNotices(t *testing.T) {
	term := viewtest.New(10, 20)
	s := &Screen{out: term}
	paint := func(lines ...string) []string {
		require.NoError(t, s.paint(lines, 10, 20))
		return term.Lines()
	}
	assert.Equal(t, []string{"a", "bb", "ccc"}, paint("a", "bb", "ccc"))
	s.Notice("kept")
	assert.Equal(t, []string{"kept", "x", "y"}, paint("x", "y"))
	assert.Equal(t, []string{"kept", "x", "y", "z", "w"}, paint("x", "y", "z", "w"))
	s.Notice("kept, and too long")
	assert.Equal(t, []string{"kept", "kept, and", "too long", "x"}, paint("x"))
	assert.Equal(t, []string{"kept", "kept, and", "too long"}, paint())
}

// After any sequence of sizes there is the tree on the terminal, once, and nothing
// of the trees before: also on a terminal that wraps lines anew, and when the size
// changes again while a frame is drawn for the one before.
func TestNothingOldIsLeftAfterAResize(t *testing.T) {
	for _, reflow := range []bool{false, true} {
		r := rand.New(rand.NewPCG(3, 4))
		for range 300 {
			term := viewtest.New(40, 12)
			term.Reflow = reflow
			width, height := 40, 12
			s := &Screen{out: term}
			for frame := range 10 {
				if r.IntN(2) == 0 {
					width, height = 5+r.IntN(60), 4+r.IntN(12)
					if r.IntN(2) == 0 {
						require.NoError(t, s.paint(lines(r, frame, width, height), width, height)) // too late for the old size
						width, height = 5+r.IntN(60), 4+r.IntN(12)
					}
					term.Resize(width, height)
					s.unknown = len(s.drawn) > 0
				}
				if r.IntN(3) == 0 {
					s.Notice(fmt.Sprintf("notice %d", frame))
				}
				tree := lines(r, frame, width, height)
				require.NoError(t, s.paint(tree, width, height))
				shown := term.Lines()
				require.GreaterOrEqual(t, len(shown), len(tree))
				require.Equal(t, tree, shown[len(shown)-len(tree):])
				for _, l := range shown[:len(shown)-len(tree)] {
					require.NotContains(t, l, "#", "%d x %d, reflow %v:\n%s", width, height, reflow, strings.Join(shown, "\n"))
				}
			}
		}
	}
}

// lines are those of a tree, none wider than the terminal: each holds a # only there.
func lines(r *rand.Rand, frame, width, height int) []string {
	var tree []string
	for range 1 + r.IntN(height-2) {
		tree = append(tree, strings.Repeat("#", 1+r.IntN(width-1))+fmt.Sprint(frame)[:1])
	}
	return tree
}

func TestOldNoticesComeBackAsFarAsThereIsRoom(t *testing.T) {
	term := viewtest.New(20, 6)
	s := &Screen{out: term}
	for i := range 200 {
		s.Notice(fmt.Sprint("notice ", i))
	}
	require.NoError(t, s.paint([]string{"tree"}, 20, 6))
	term.Resize(8, 6)
	s.unknown = true
	require.NoError(t, s.paint([]string{"tree"}, 8, 6))
	assert.Equal(t, []string{"notice", "198", "notice", "199", "tree"}, term.Lines())
	assert.Len(t, s.told, 100)
}

// A script of events: what is there when they have been obeyed.
func TestCtrlZ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := viewtest.New(20, 10)
		s := &Screen{out: term, size: func() (int, int) { return 20, 10 }}
		require.NoError(t, s.paint([]string{"tree", "job"}, 20, 10))
		stopped := false
		s.suspend = func(*events) {
			stopped = true
			assert.Empty(t, term.Lines(), "the tree is gone before the process stops")
			fmt.Fprint(term, "$ ls\r\nfile\r\n$ fg\r\n")
		}
		s.terminal.tell(suspended)
		require.NoError(t, s.obey())
		require.False(t, stopped, "what is on its way to the terminal would be lost")
		time.Sleep(flushed)
		require.NoError(t, s.obey())
		require.True(t, stopped)
		require.NoError(t, s.obey())
		require.NoError(t, s.paint([]string{"tree", "job"}, 20, 10))
		assert.Equal(t, []string{"$ ls", "file", "$ fg", "tree", "job"}, term.Lines())

		// It was stopped from elsewhere, and the shell has said so below the tree.
		fmt.Fprint(term, "stopped\r\n$ fg\r\n")
		s.terminal.tell(resumed)
		require.NoError(t, s.obey())
		require.NoError(t, s.paint([]string{"tree", "job"}, 20, 10))
		assert.Equal(t, []string{"tree", "job"}, term.Lines())
	})
}
