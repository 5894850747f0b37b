package top

import (
	"os"

	"golang.org/x/term"
)

// A terminal is used whole: on its other screen, without cursor and without line
// breaks of its own.
type terminal struct {
	in, out *os.File
	old     *term.State // nil: it is not ours now
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// canDraw reports whether both are a terminal whose cursor can be moved.
func canDraw(in, out *os.File, env func(string) string) bool {
	kind := env("TERM")
	return kind != "" && kind != "dumb" && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// enter takes the terminal, or takes it again.
func (t *terminal) enter() error {
	old, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return err
	}
	if t.old == nil {
		t.old = old
	}
	_, err = t.out.WriteString(enterScreen)
	return err
}

// leave gives the terminal back as it was.
func (t *terminal) leave() {
	if t.old == nil {
		return
	}
	_, _ = t.out.WriteString(leaveScreen) // nobody is left who could be told
	_ = term.Restore(int(t.in.Fd()), t.old)
	t.old = nil
}

func (t *terminal) size() (width, height int) {
	w, h, err := term.GetSize(int(t.out.Fd()))
	if err != nil || w <= 0 || h <= 0 {
		return 80, 24
	}
	return w, h
}

// keys returns what is typed, and is closed when the terminal is gone. What reads it
// ends with the process: a read of a terminal cannot be called off.
func (t *terminal) keys() <-chan string {
	keys := make(chan string)
	go func() {
		defer close(keys)
		buf := make([]byte, 256)
		for {
			n, err := t.in.Read(buf)
			for _, k := range typed(buf[:n]) {
				keys <- k
			}
			if err != nil {
				return
			}
		}
	}()
	return keys
}
