//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A session runs one command.
type serverSession struct {
	server  *sshServer
	line    *line
	channel ssh.Channel

	mu    sync.Mutex
	group int           // of the command that runs; 0 while none does
	runs  chan struct{} // gets a value when it runs, or cannot
}

// serve answers the requests of the session until the client closes it, and
// then ends what still runs.
func (s *serverSession) serve(ctx context.Context, requests <-chan *ssh.Request) {
	_ = async.Scope(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // the command, if the client has gone
		begun := false
		for req := range requests {
			ok := false
			switch {
			case req.Type == "exec" && !begun:
				if s.server.flaw == noShell {
					continue
				}
				var msg struct{ Command string }
				if ok = ssh.Unmarshal(req.Payload, &msg) == nil; ok {
					begun = true
					async.Go(ctx, func(ctx context.Context) error { return s.run(ctx, msg.Command) }, async.Name(msg.Command))
					select { // else a signal could come before there is somebody to hear it
					case <-s.runs:
					case <-ctx.Done():
					}
				}
			case req.Type == "signal":
				var msg struct{ Signal string }
				ok = ssh.Unmarshal(req.Payload, &msg) == nil && s.signal(msg.Signal)
			}
			if req.WantReply {
				_ = req.Reply(ok, nil) // fails with the connection
			}
			if begun && s.server.flaw == stalled {
				s.line.deafen()
			}
		}
		return nil
	})
}

// signals are those of RFC 4254.
var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP,
	"ILL": syscall.SIGILL, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE,
	"QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// signal sends a signal to the group of the command.
func (s *serverSession) signal(name string) bool {
	if s.server.flaw == ignoreSignals {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sig, known := signals[name]
	return known && s.group != 0 && syscall.Kill(-s.group, sig) == nil
}

// begun says that the command runs, or will not.
func (s *serverSession) begun() {
	select {
	case s.runs <- struct{}{}:
	default:
	}
}

func (s *serverSession) setGroup(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group = id
}

// run runs a command with the channel as its input and output, says how it has
// ended, and closes the channel.
func (s *serverSession) run(ctx context.Context, command string) error {
	defer s.begun()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	async.Go(ctx, func(context.Context) error { s.feed(w); return nil }, async.Name("input"))
	result, _ := proc.Run(ctx, proc.Command{ // how it ended is in the result
		Args:   []string{"bash", "-c", command},
		Stdin:  r,
		Stdout: &commandOutput{s, s.channel},
		Stderr: &commandOutput{s, s.channel.Stderr()},
		Grace:  -1,
		Started: func(pid int) {
			_ = r.Close() // the command has its own
			s.setGroup(pid)
			s.begun()
		},
	})
	_ = r.Close()
	_ = w.Close() // nobody reads it
	s.setGroup(0)
	s.report(ctx, result)
	return nil
}

// feed copies the channel to the input of the command, to its end.
func (s *serverSession) feed(w *os.File) {
	defer w.Close()
	var src io.Reader = s.channel
	if s.server.flaw == cut {
		src = io.LimitReader(src, 64<<10)
	}
	if _, err := io.Copy(w, src); err != nil { // the command has ended or reads no more
		_, _ = io.Copy(io.Discard, s.channel)
	}
}

// report says how the command has ended. A client that has gone hears nothing.
func (s *serverSession) report(ctx context.Context, result proc.Result) {
	switch s.server.flaw {
	case noEnd:
		<-ctx.Done()
		return
	case hangUp, cut:
		_ = s.line.Close()
		return
	}
	request, payload := "exit-status", ssh.Marshal(struct{ Status uint32 }{uint32(result.Code)})
	if result.Signal != 0 {
		request, payload = "exit-signal", ssh.Marshal(struct {
			Signal        string
			Core          bool
			Message, Lang string
		}{proc.SignalName(result.Signal)[len("SIG"):], false, "", ""})
	}
	_, _ = s.channel.SendRequest(request, false, payload)
	_ = s.channel.Close()
}

// output is a stream of the command.
type commandOutput struct {
	*serverSession
	w io.Writer
}

func (o *commandOutput) Write(p []byte) (int, error) {
	if o.server.flaw == deaf {
		o.line.deafen()
	}
	return o.w.Write(p)
}
