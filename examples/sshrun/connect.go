package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// A session is a shell on another machine.
type session struct {
	*ssh.Session
	client *ssh.Client
	tcp    net.Conn // once it is closed, nothing waits for the server any more
}

// close ends the connection at once, whatever the server does. A Close of the
// ssh connection could have to wait for a packet that cannot be sent.
func (s *session) close() {
	_ = s.tcp.Close()
	if s.client != nil {
		_ = s.client.Wait()
	}
}

// open starts the shell on the machine. It gives up after -connect-timeout, or when ctx is
// done. Nothing in a handshake looks at a context, so the end of ctx closes the connection
// below it. Nothing is run by then, so there is nothing to stop.
func (cfg *config) open(ctx context.Context, prepare func(*ssh.Session)) (*session, error) {
	client, address, err := cfg.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.connect)
	defer cancel()
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	s := &session{tcp: tcp}
	defer context.AfterFunc(ctx, func() { _ = tcp.Close() })()
	during := "in the handshake"
	conn, channels, requests, err := ssh.NewClientConn(tcp, address, client)
	if err == nil {
		during = "opening a session"
		s.client = ssh.NewClient(conn, channels, requests)
		s.Session, err = s.client.NewSession()
	}
	if err == nil {
		during = "starting " + cfg.shell
		prepare(s.Session)
		err = s.Start(cfg.shell)
	}
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() == context.DeadlineExceeded:
		err = fmt.Errorf("no answer from %s within %v", address, cfg.connect)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	s.close()
	return nil, fmt.Errorf("%s: %w; nothing was run", during, err)
}

// client reads the files about the other machine, and takes [user@]host[:port] apart.
func (cfg *config) client() (client *ssh.ClientConfig, address string, err error) {
	name, address, named := strings.Cut(cfg.host, "@")
	if !named {
		name, address = os.Getenv("USER"), cfg.host
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "22")
	}
	key, err := os.ReadFile(cfg.identity)
	if err != nil {
		return nil, "", fmt.Errorf("-identity: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, "", fmt.Errorf("-identity %s: %w", cfg.identity, err)
	}
	check, err := knownhosts.New(cfg.knownHosts)
	if err != nil {
		return nil, "", fmt.Errorf("-known-hosts: %w", err)
	}
	return &ssh.ClientConfig{
		User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: algorithms(check, address),
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			err := check(host, remote, key)
			if err != nil { // what to do is the caller's decision: no key is trusted by itself
				err = fmt.Errorf("%w: the key is %s, the file %s", err, ssh.FingerprintSHA256(key), cfg.knownHosts)
			}
			return err
		},
	}, address, nil
}

// algorithms are those of the keys that are known of the machine, nil if none is. A server
// may have several keys; without this it could show one that is not in the file and be
// refused.
func algorithms(check ssh.HostKeyCallback, address string) (known []string) {
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(bytes.Repeat([]byte{1}, ed25519.PublicKeySize)))
	var wrong *knownhosts.KeyError
	if err != nil || !errors.As(check(address, &net.TCPAddr{}, nobody), &wrong) {
		return nil
	}
	for _, want := range wrong.Want {
		if t := want.Key.Type(); t == ssh.KeyAlgoRSA {
			known = append(known, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			known = append(known, t)
		}
	}
	return known
}
