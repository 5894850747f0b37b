//go:build unix

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/sshrun/sshserver"
)

// demoScript is what is run when nothing else is given.
const demoScript = `echo "hello from process $$ at the other end of $(tty >/dev/null && echo a terminal || echo a connection)"
for i in 1 2 3; do echo "line $i"; sleep 0.2; done
echo "a word on stderr" >&2
exit 0
`

// demo runs the step on a server that is built in and listens on the loopback
// interface. The server is in a scope around that of the step: when the step is
// told to stop, the server is not.
func (cfg *config) demo(ctx context.Context, step Step) error {
	server, to, err := newDemo(cfg)
	if err != nil {
		return err
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		async.Go(ctx, func(ctx context.Context) error { return server.Serve(ctx, l) }, async.Daemon(), async.Name("ssh server"))
		to.address = l.Addr().String()
		return run(ctx, to, step)
	}, async.Name("demo"))
}

// newDemo makes a server and the way to it: both have keys that were made for
// this run, and know each other's.
func newDemo(cfg *config) (*sshserver.Server, destination, error) {
	var to destination
	if cfg.server != "" && !slices.Contains(sshserver.Flaws(), cfg.server) {
		return nil, to, cli.Usagef("-server %q is none of %s", cfg.server, strings.Join(sshserver.Flaws(), ", "))
	}
	host, err := newKey()
	if err != nil {
		return nil, to, err
	}
	user, err := newKey()
	if err != nil {
		return nil, to, err
	}
	to.user, to.hostKey = "demo", ssh.FixedHostKey(host.PublicKey())
	to.auth = []ssh.AuthMethod{ssh.PublicKeys(user)}
	return &sshserver.Server{
		HostKeys: []ssh.Signer{host}, User: to.user, Key: user.PublicKey(),
		Flaw: sshserver.Flaw(cfg.server), Grace: cfg.limits.Term,
	}, to, nil
}

func newKey() (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	return ssh.NewSignerFromKey(key)
}
