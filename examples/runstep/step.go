//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/foreground"
	"github.com/ambit-go/ambit/proc"
)

// shell runs a script as pipelines are used to: the first command that fails is
// the end of it, and nobody's start-up files change anything.
var shell = []string{"bash", "--noprofile", "--norc", "-eo", "pipefail"}

// command makes the command of what the flags and arguments say.
func (cfg *config) command(args []string, std cli.Streams) (proc.Command, error) {
	c := proc.Command{
		Name: cfg.name, Dir: cfg.dir,
		Grace: cfg.grace, Linger: cfg.linger,
		Stdout: foreground.Piped(std.Out), Stderr: foreground.Piped(std.Err),
	}
	if info, err := os.Stat(cfg.dir); cfg.dir != "" && (err != nil || !info.IsDir()) {
		return c, cli.Usagef("-C %s: not a directory", cfg.dir)
	}
	switch {
	case cfg.demo && (cfg.file != "" || len(args) > 0):
		return c, cli.Usagef("-demo is a step of its own; leave out the command and -f")
	case cfg.demo:
		c.Args = append(shell[:len(shell):len(shell)], "-c", demo)
		setDefault(&c.Name, "demo")
		if cfg.timeout == 0 {
			cfg.timeout = demoTimeout
			if c.Grace == proc.DefaultGrace { // nobody has said how long
				c.Grace = demoGrace
			}
		}
	case cfg.file != "":
		path, err := filepath.Abs(cfg.file) // -C comes later
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return c, &cli.ExitError{Code: foreground.StatusMissing, Err: err}
		}
		c.Args = append(append(shell[:len(shell):len(shell)], path), args...)
		setDefault(&c.Name, filepath.Base(path))
	case len(args) > 0 && args[0] == "":
		return c, cli.Usagef(`the command is ""; is a variable empty?`)
	case len(args) > 0:
		c.Args = args
		setDefault(&c.Name, filepath.Base(args[0]))
	default:
		return fromStdin(c, std.In)
	}
	return c, nil
}

// fromStdin makes bash read the script from our standard input: as a file of its
// own. As its standard input the commands of the script could eat the rest.
func fromStdin(c proc.Command, in io.Reader) (proc.Command, error) {
	const descriptor = "/dev/fd/3" // the first of ExtraFiles
	file, ok := in.(*os.File)
	if !ok || isatty.IsTerminal(file.Fd()) {
		return c, cli.Usagef("nothing to run: give a command after --, a script with -f or on standard input, or -demo")
	}
	c.Args = append(shell[:len(shell):len(shell)], descriptor)
	info, err := file.Stat()
	if err != nil {
		return c, cli.Usagef("standard input: %v", err)
	}
	if info.IsDir() {
		return c, cli.Usagef("standard input is a directory; a script is a file, or comes from a pipe")
	}
	c.ExtraFiles = []*os.File{file}
	setDefault(&c.Name, "script")
	return c, nil
}

// openable replaces those of the files that are sockets, as some parents give
// one for standard input: a descriptor that is a socket cannot be opened by its
// name in /dev/fd.
func openable(ctx context.Context, files []*os.File) error {
	for i, file := range files {
		info, err := file.Stat()
		if err == nil && info.Mode()&os.ModeSocket != 0 {
			files[i], err = piped(ctx, file)
		}
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
	return nil
}

// piped returns a pipe that has what comes from a socket. It lasts as long as
// the scope of ctx.
func piped(ctx context.Context, socket *os.File) (*os.File, error) {
	conn, err := net.FileConn(socket) // whose reads can be ended
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	async.Go(ctx, func(ctx context.Context) error {
		end := func() { _ = conn.Close(); _ = w.Close() }
		defer end()
		defer context.AfterFunc(ctx, end)()
		_, _ = io.Copy(w, conn) // the script ends where the input does
		return nil
	}, async.Daemon(), async.Name("standard input"))
	async.OnExit(ctx, func(context.Context, error) error { return r.Close() })
	return r, nil
}

func setDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// The demonstration is a step that takes too long, answers TERM with an exit
// status of its own, and has a child that ignores TERM.
const (
	demoTimeout = time.Second
	demoGrace   = 2 * time.Second
	demo        = `
		trap 'echo "step: got TERM, cleaning up"; exit 7' TERM
		(trap '' TERM; echo "child: ignores TERM"; while :; do sleep 0.1; done) &
		echo "step: would take an hour"
		sleep 3600 & wait $!
	`
)
