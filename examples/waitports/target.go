package main

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A target is a service to wait for.
type target struct {
	name    string // the address if it was given none
	address string // host:port
	limit   time.Duration
}

// parseTargets reads targets. limit is that of those that have none.
func parseTargets(args []string, limit time.Duration) ([]target, error) {
	var targets []target
	for _, arg := range args {
		t, err := parseTarget(arg, limit)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// parseTarget reads [name=]host:port[@limit].
func parseTarget(arg string, limit time.Duration) (t target, err error) {
	t.limit = limit
	rest, after, limited := strings.Cut(arg, "@")
	if limited {
		if t.limit, err = time.ParseDuration(after); err != nil || t.limit <= 0 {
			return t, cli.Usagef("%q: the limit must be a time like 10s or 2m, not %q", arg, after)
		}
	}
	name, address, named := strings.Cut(rest, "=")
	if !named {
		name, address = rest, rest
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || !isPort(port) {
		return t, cli.Usagef("%q: %q is not host:port, like 127.0.0.1:5432", arg, address)
	}
	if name == "" {
		return t, cli.Usagef("%q: there is no name before =", arg)
	}
	t.name, t.address = name, address
	return t, nil
}

// isPort also takes the names of services: https.
func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	if err != nil {
		n, err = net.LookupPort("tcp", s)
	}
	return err == nil && n > 0 && n < 1<<16
}
