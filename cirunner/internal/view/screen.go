package view

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A Screen shows a run as a tree on a terminal, ten times a second, below what
// there is to tell for good. It takes no input and does not change the
// terminal's mode: an interrupt stays a signal, and whatever ends the process
// leaves the terminal as it was.
//
// As a board.Watcher it never waits for the terminal: a job is not slowed down
// by somebody who has paused the output.
type Screen struct {
	// Frame, if it is not nil, is told each frame that is drawn.
	Frame func(lines []string, jobs []board.Job)

	out    io.Writer
	size   func() (width, height int)
	failed func(error)

	mu      sync.Mutex
	notices []string

	drawn []string // the lines on the terminal; owned by Show, as is what follows
	width int      // it had then
}

// CanDraw reports whether a file is a terminal whose cursor can be moved: one of
// an unknown kind, without TERM, would get the tree again and again.
func CanDraw(f *os.File) bool {
	if kind := os.Getenv("TERM"); kind == "" || kind == "dumb" {
		return false
	}
	return term.IsTerminal(f.Fd())
}

// NewScreen returns a screen on a terminal. failed is called with the first
// error of it. Colours are those that the terminal has, and none if the
// environment says NO_COLOR.
func NewScreen(f *os.File, failed func(error)) *Screen {
	return &Screen{
		out: colorprofile.NewWriter(f, os.Environ()),
		size: func() (int, int) {
			w, h, err := term.GetSize(f.Fd())
			if err != nil || w <= 0 || h <= 0 {
				return 80, 24
			}
			return w, h
		},
		failed: failed,
	}
}

// Changed keeps a line for a job that has failed.
func (s *Screen) Changed(j board.Job) {
	if j.State == plan.Failed {
		s.Notice(fmt.Sprintf("%s %s: %s, log in %s", mark(j.State), j.Name, j.Why, j.Log))
	}
}

// Line does nothing: the board has the last line.
func (s *Screen) Line(job, source, line string) {}

// Notice keeps a line that is to stay above the tree.
func (s *Screen) Notice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, text)
}

// Show draws the board until ctx ends, and then takes the tree away: the report
// says it all.
func (s *Screen) Show(ctx context.Context, b *board.Board) error {
	begin := time.Now()
	draw := func(context.Context) error {
		width, height := s.size()
		f := frame{jobs: b.Jobs(), now: time.Now(), begin: begin, width: width, height: height - 1}
		lines := f.draw()
		if s.Frame != nil {
			s.Frame(lines, f.jobs)
		}
		return s.paint(lines, width)
	}
	_, err := async.Repeat(ctx, async.Every(100*time.Millisecond), draw, async.FixedRate()).Await(ctx, 0)
	if ctx.Err() == nil {
		s.failed(err)
		return nil
	}
	width, _ := s.size()
	_ = s.paint(nil, width)
	return nil
}

// paint replaces the lines on the terminal, in one write.
func (s *Screen) paint(lines []string, width int) error {
	s.mu.Lock()
	notices := s.notices
	s.notices = nil
	s.mu.Unlock()
	if len(notices) == 0 && slices.Equal(lines, s.drawn) && width == s.width {
		return nil
	}
	var b strings.Builder
	if up := s.rows(width); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	for _, n := range notices {
		b.WriteString(n + "\x1b[K\r\n")
	}
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J") // what was drawn below
	s.drawn, s.width = lines, width
	_, err := io.WriteString(s.out, b.String())
	return err
}

// rows is how many rows of the terminal the drawn lines take. One that has
// become narrower has wrapped those that do not fit any more.
func (s *Screen) rows(width int) int {
	n := 0
	for _, l := range s.drawn {
		n += max(1, (ansi.StringWidth(l)+width-1)/width)
	}
	return n
}
