//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

// A destination is a machine and how to get there.
type destination struct {
	address string // host:port
	user    string
	auth    []ssh.AuthMethod
	hostKey ssh.HostKeyCallback
	tune    func(net.Conn) // for tests; may be nil
}

// A session is a shell on another machine that waits for its script.
type session struct {
	tcp      net.Conn // once it is closed, nothing waits for the server any more
	conn     ssh.Conn
	channel  ssh.Channel
	requests <-chan *ssh.Request // what the server has to say about the shell
	opened   <-chan ssh.NewChannel
	asked    <-chan *ssh.Request
}

// connect starts shell on the machine. It gives up after limit, or when ctx is
// done, with an AbandonedError that tells how far it came. Until the script is
// sent nothing has been done there, so there is nothing to stop.
func connect(ctx context.Context, to destination, shell string, limit time.Duration) (*session, error) {
	opening := async.Execute(ctx, func(ctx context.Context) (*session, error) {
		s, err := open(ctx, to, shell)
		if err != nil && s != nil {
			s.close()
		}
		return s, err
	},
		async.Name("connect to "+to.address),
		async.OnDiscard((*session).close),
		async.Grace(limit)) // for closing: it does not take long
	s, err := opening.Await(ctx, limit)
	if gone, ok := errors.AsType[*AbandonedError](err); ok {
		gone.During = fmt.Sprintf("%s; the limit was %v", gone.During, limit)
		return nil, remote.Stopped(ctx, gone)
	}
	return s, err
}

// open is connect without a limit of its own. Nothing in a handshake looks at a
// context, so the end of ctx closes the connection below it.
func open(ctx context.Context, to destination, shell string) (*session, error) {
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", to.address)
	if err != nil {
		return nil, gaveUp(ctx, "connecting to "+to.address, err)
	}
	if to.tune != nil {
		to.tune(tcp)
	}
	s := &session{tcp: tcp}
	defer context.AfterFunc(ctx, s.close)()

	s.conn, s.opened, s.asked, err = ssh.NewClientConn(tcp, to.address, &ssh.ClientConfig{
		User: to.user, Auth: to.auth, HostKeyCallback: to.hostKey,
		HostKeyAlgorithms: to.hostKeyAlgorithms(),
	})
	if err != nil {
		return s, gaveUp(ctx, "in the handshake with "+to.address, err)
	}
	if s.channel, s.requests, err = s.conn.OpenChannel("session", nil); err != nil {
		return s, gaveUp(ctx, "opening a session on "+to.address, err)
	}
	accepted, err := s.channel.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{shell}))
	if err != nil {
		return s, gaveUp(ctx, "starting "+shell+" on "+to.address, err)
	}
	if !accepted {
		return s, fmt.Errorf("%s refuses to start %q", to.address, shell)
	}
	return s, nil
}

// gaveUp tells an error of the network from what the end of ctx has caused.
func gaveUp(ctx context.Context, during string, err error) error {
	if ctx.Err() != nil {
		return &AbandonedError{During: "no answer " + during}
	}
	return fmt.Errorf("%s: %w", during, err)
}

// close ends the connection at once, whatever the server does. A Close of the
// ssh connection could have to wait for a packet that cannot be sent.
func (s *session) close() { _ = s.tcp.Close() }

// serve answers what the server asks for by itself, until the connection ends:
// nothing of it is needed here, but unanswered requests would block the rest.
func (s *session) serve(ctx context.Context) {
	async.Go(ctx, func(context.Context) error {
		ssh.DiscardRequests(s.asked)
		return nil
	}, async.Name("requests of the server"))
	async.Go(ctx, func(context.Context) error {
		for c := range s.opened {
			_ = c.Reject(ssh.Prohibited, "this client opens no channels") // fails with the connection
		}
		return nil
	}, async.Name("channels of the server"))
}

// alive asks the server for an answer, any. A server that has nothing to do
// with such requests says so, which is as good.
func (s *session) alive() error {
	_, _, err := s.conn.SendRequest("keepalive@openssh.com", true, nil)
	if errors.Is(err, io.EOF) { // the connection has ended: whoever waits for the script is told
		return nil
	}
	return err
}

// signal asks the server to signal the script. It blocks while the server does
// not read.
func (s *session) signal(name string) error {
	_, err := s.channel.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{name}))
	return err
}
