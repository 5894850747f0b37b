//go:build unix

package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/loopback"
	"github.com/ambit-go/ambit/proc"
)

// demos are scripts, by kind. They beat by touching $BEAT.
var demos = map[string]string{
	"ok":   `for i in 1 2 3; do touch "$BEAT"; echo "working: $i"; sleep 0.3; done`,
	"fail": `touch "$BEAT"; echo working; sleep 0.3; echo "cannot go on" >&2; exit 7`,
	"late": `echo "working, for an hour"; while :; do touch "$BEAT"; sleep 0.1; done`,
	"hang": `touch "$BEAT"; echo "working, and then stuck"; sleep 3600`,
	"sick": `trap 'echo "told to stop"; exit 7' TERM
		echo "working, but not well"; while :; do touch "$BEAT"; sleep 0.1; done`,
}

// kinds returns the kinds of demonstrations.
func kinds() []string { return []string{"ok", "fail", "late", "hang", "sick"} }

// startDemo makes c one of the demonstrations, with a place to beat and somebody
// to ask for its health. What it starts ends with the scope of ctx.
func (cfg *config) startDemo(ctx context.Context, c *proc.Command) error {
	dir, err := os.MkdirTemp("", "watchstep")
	if err != nil {
		return err
	}
	async.OnExit(ctx, func(context.Context, error) error { return os.RemoveAll(dir) })
	well := []bool{true}
	if cfg.demo == "sick" {
		well = []bool{true, false, false, true, true, false} // two bad answers, all well, then nothing but
	}
	if cfg.health, err = doctor(ctx, well); err != nil {
		return err
	}
	cfg.beat = filepath.Join(dir, "beat")
	cfg.every, cfg.stale = 250*time.Millisecond, time.Second
	if cfg.timeout == 0 && cfg.demo == "late" {
		cfg.timeout = 2 * time.Second
	}
	c.Name = cfg.demo
	c.Args = []string{"bash", "-c", demos[cfg.demo]}
	c.Env = append(os.Environ(), "BEAT="+cfg.beat)
	return nil
}

// doctor serves a URL that tells whether somebody is well: each of the answers
// once, and the last one from then on.
func doctor(ctx context.Context, well []bool) (url string, err error) {
	var asked atomic.Int64
	root, err := loopback.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(asked.Add(1)) - 1
		if !well[min(n, len(well)-1)] {
			http.Error(w, "not well", http.StatusServiceUnavailable)
		}
	}))
	return root + "/", err
}
