package pipeline

import "time"

// readWatchdog reads cirunner, under which everything stands that GitLab does
// not have, the services' keywords apart.
func readWatchdog(p *parser, d *draft, n *node) {
	w := Watchdog{Grace: -1}
	p.fields("cirunner", n, keys{
		"heartbeat": func(n *node) { p.heartbeat(&w, n) },
		"silence":   func(n *node) { w.Silence, _ = p.duration("cirunner:silence", n, maxTimeout) },
		"grace":     func(n *node) { w.Grace = p.grace(n) },
	}, nil)
	d.Watchdog = w
}

func (p *parser) heartbeat(w *Watchdog, n *node) {
	ok := p.fields("cirunner:heartbeat", n, keys{
		"file": func(n *node) {
			w.Heartbeat, _ = p.string("cirunner:heartbeat:file", n)
			p.inside("cirunner:heartbeat:file", n)
		},
		"within": func(n *node) { w.HeartbeatWithin, _ = p.duration("cirunner:heartbeat:within", n, maxTimeout) },
	}, nil)
	for _, key := range []string{"file", "within"} {
		if ok && !n.has(key) {
			p.errorf(n.at, "a heartbeat needs a file that the script touches and the time within which it does: %s is missing", key)
		}
	}
}

// grace reads a duration that may be nothing.
func (p *parser) grace(n *node) time.Duration {
	if d, err := parseDuration(n.text); err == nil && d == 0 && (n.kind == text || n.kind == integer) {
		return 0
	}
	d, ok := p.duration("cirunner:grace", n, time.Hour)
	if !ok {
		return -1
	}
	return d
}
