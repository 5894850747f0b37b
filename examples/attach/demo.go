//go:build unix

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/attach/daemon"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// demoScript is what is run when nothing else is given. It does not wait for
// input.
const demoScript = `echo "hello from a container that is process $$"
for i in 1 2 3; do echo "line $i"; sleep 0.2; done
echo "a word on stderr" >&2
`

// demo runs the job with a daemon that is built in. The daemon is in a scope
// around that of the job: when the job is told to stop, the daemon is not.
func (cfg *config) demo(ctx context.Context, job Job) (err error) {
	if cfg.daemon != "" && !slices.Contains(daemon.Flaws(), cfg.daemon) {
		return cli.Usagef("-daemon %q is none of %s", cfg.daemon, strings.Join(daemon.Flaws(), ", "))
	}
	dir, err := os.MkdirTemp("", "attach-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return async.Scope(ctx, func(ctx context.Context) error {
		socket := filepath.Join(dir, "daemon.sock")
		l, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		d := &daemon.Daemon{Flaw: daemon.Flaw(cfg.daemon)}
		async.Go(ctx, func(ctx context.Context) error { return d.Serve(ctx, l) }, async.Daemon(), async.Name("daemon"))
		return run(ctx, socket, job)
	}, async.Name("demo"))
}
