package draft

import (
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// readWatchdog reads cirunner, under which everything stands that GitLab does
// not have, the services' keywords apart.
func readWatchdog(p *Parser, d *Draft, n *tree.Node) {
	w := pipeline.Watchdog{Grace: -1}
	p.Fields("cirunner", n, tree.Keys{
		"heartbeat": func(n *tree.Node) { p.heartbeat(&w, n) },
		"silence":   func(n *tree.Node) { w.Silence, _ = p.Duration("cirunner:silence", n, tree.MaxTimeout) },
		"grace":     func(n *tree.Node) { w.Grace = p.grace(n) },
	}, nil)
	d.Watchdog = w
}

func (p *Parser) heartbeat(w *pipeline.Watchdog, n *tree.Node) {
	ok := p.Fields("cirunner:heartbeat", n, tree.Keys{
		"file": func(n *tree.Node) {
			w.Heartbeat, _ = p.String("cirunner:heartbeat:file", n)
			p.inside("cirunner:heartbeat:file", n)
		},
		"within": func(n *tree.Node) { w.HeartbeatWithin, _ = p.Duration("cirunner:heartbeat:within", n, tree.MaxTimeout) },
	}, nil)
	for _, key := range []string{"file", "within"} {
		if ok && !n.Has(key) {
			p.Errorf(n.At, "a heartbeat needs a file that the script touches and the time within which it does: %s is missing", key)
		}
	}
}

// grace reads a duration that may be nothing.
func (p *Parser) grace(n *tree.Node) time.Duration {
	if d, err := tree.ParseDuration(n.Text); err == nil && d == 0 && (n.Kind == tree.Text || n.Kind == tree.Integer) {
		return 0
	}
	d, ok := p.Duration("cirunner:grace", n, time.Hour)
	if !ok {
		return -1
	}
	return d
}
