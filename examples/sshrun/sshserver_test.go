//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"net"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
)

// An sshServer runs what its one user asks for, in process groups of their own. It can be told to misbehave, and
// leaves nothing behind.
type sshServer struct {
	HostKeys []ssh.Signer
	User     string
	Key      ssh.PublicKey // authenticates the user
	flaw     flaw
}

var errRefused = errors.New("refused")

// config is how the server authenticates.
func (s *sshServer) config() *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		PublicKeyCallback: func(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if conn.User() != s.User || s.Key == nil || !bytes.Equal(key.Marshal(), s.Key.Marshal()) {
				return nil, errRefused
			}
			return nil, nil
		},
	}
	for _, key := range s.HostKeys {
		c.AddHostKey(key)
	}
	return c
}

// Serve accepts connections until ctx is done, and returns when all of them and
// all commands have ended. It closes l. An error of a connection is that
// client's affair.
func (s *sshServer) Serve(ctx context.Context, l net.Listener) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = l.Close() })()
		for {
			conn, err := l.Accept()
			if err != nil {
				_ = l.Close()
				if ctx.Err() != nil {
					return nil // it was closed for that
				}
				return err
			}
			async.Go(ctx, func(ctx context.Context) error { return s.serve(ctx, conn) }, async.Name("connection"))
		}
	}, async.Name("ssh server"), async.OnFailure(func(error) error { return nil }))
}

// serve attends to one connection until it ends.
func (s *sshServer) serve(ctx context.Context, tcp net.Conn) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		line := newLine(tcp, s.flaw)
		defer line.Close()
		defer context.AfterFunc(ctx, func() { _ = line.Close() })()
		if s.flaw == silent {
			<-ctx.Done()
			return nil
		}
		conn, channels, requests, err := ssh.NewServerConn(line, s.config())
		if err != nil {
			return err
		}
		async.Go(ctx, func(context.Context) error { ssh.DiscardRequests(requests); return nil })
		s.attend(ctx, line, channels)
		return conn.Wait()
	})
}

// attend opens the sessions that are asked for, until the connection ends.
func (s *sshServer) attend(ctx context.Context, line *line, channels <-chan ssh.NewChannel) {
	for c := range channels {
		switch {
		case c.ChannelType() != "session":
			_ = c.Reject(ssh.UnknownChannelType, "only sessions")
		case s.flaw == noSession:
		default:
			channel, requests, err := c.Accept()
			if err != nil {
				return
			}
			session := &serverSession{server: s, line: line, channel: channel, runs: make(chan struct{}, 1)}
			async.Go(ctx, func(ctx context.Context) error { session.serve(ctx, requests); return nil }, async.Name("session"))
		}
	}
}
