package view

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/board"
)

// A Screen shows a run as a tree on a terminal, ten times a second, below what
// there is to tell for good. It takes no input and does not change the
// terminal's mode: an interrupt stays a signal, and whatever ends the process
// leaves the terminal as it was.
//
// Nothing old is left on the terminal. When the size changes nobody can know what has
// become of the lines that were drawn: some terminals wrap them anew, others cut
// them. So the terminal is cleared then. Ctrl-Z takes the tree away before the
// process stops, and it is drawn anew below what the shell has said meanwhile. In the
// background nothing is drawn.
//
// As a board.Watcher it never waits for the terminal: a job is not slowed down
// by somebody who has paused the output.
type Screen struct {
	// Frame, if it is not nil, is told each frame that is drawn.
	Frame func(lines []string, jobs []board.Job)

	out      io.Writer
	size     func() (width, height int)
	inFront  func() bool   // this process may draw: it is not in the background
	suspend  func(*events) // stops this process, and returns when it is continued
	failed   func(error)
	terminal events

	mu      sync.Mutex
	notices []string // not written yet

	// The fields below are owned by Show.

	told    []string  // the last notices that were written
	drawn   []string  // the lines of the tree on the terminal
	width   int       // it had then
	unknown bool      // what is on the terminal is not known
	ctrlZ   time.Time // when it was pressed; zero when that is done
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
		inFront: func() bool { return inForeground(f) },
		suspend: stopSelf,
		failed:  failed,
	}
}

// Changed does nothing: the tree shows a failure while the run lasts, and Final tells of it
// when it has ended.
func (s *Screen) Changed(board.Job) {}

// Line does nothing: the board has the last line.
func (s *Screen) Line(job, source, line string) {}

// Notice keeps a line that is to stay above the tree.
func (s *Screen) Notice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, text)
}

// Show draws the board until ctx ends, and then takes the tree away: what Final
// writes says all.
func (s *Screen) Show(ctx context.Context, b *board.Board) error {
	begin := time.Now()
	stop := s.terminal.begin()
	defer stop()
	draw := func(context.Context) error { return s.draw(b, begin) }
	_, err := async.Repeat(ctx, async.Every(100*time.Millisecond), draw, async.FixedRate()).Await(ctx, 0)
	if ctx.Err() == nil {
		s.failed(err)
		return nil
	}
	_ = s.obey()
	width, height := s.size()
	_ = s.paint(nil, width, height)
	return nil
}

// draw draws a frame, after what the terminal has asked for.
func (s *Screen) draw(b *board.Board, begin time.Time) error {
	if err := s.obey(); err != nil {
		return err
	}
	width, height := s.size()
	f := frame{jobs: b.Jobs(), status: b.Status(), now: time.Now(), begin: begin, width: width, height: height - 1}
	lines := f.draw()
	if s.Frame != nil {
		s.Frame(lines, f.jobs)
	}
	if !s.inFront() {
		s.drawn, s.unknown = nil, false // the shell has the terminal, and leaves the cursor where to go on
		return nil
	}
	return s.paint(lines, width, height)
}

// flushed is how long after Ctrl-Z the tree is taken away: the system throws away
// what is on its way to the terminal, after it has sent the signal.
const flushed = 50 * time.Millisecond

// obey does what the terminal has asked for since the last frame.
func (s *Screen) obey() error {
	for {
		switch s.terminal.next() {
		case nothing:
			if s.ctrlZ.IsZero() || time.Since(s.ctrlZ) < flushed {
				return nil
			}
			if err := s.giveWay(); err != nil {
				return err
			}
		case resized, resumed: // by whoever has stopped this process: a shell may have written since
			s.unknown = len(s.drawn) > 0
		case suspended:
			s.ctrlZ = time.Now()
		}
	}
}

// giveWay takes the tree away and stops this process, until it is continued.
func (s *Screen) giveWay() error {
	width, height := s.size()
	if err := s.paint(nil, width, height); err != nil {
		return err
	}
	s.ctrlZ = time.Time{}
	s.suspend(&s.terminal)
	return nil
}
