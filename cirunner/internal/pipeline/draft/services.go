package draft

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// maxServices is how many services a job may have.
const maxServices = 20

// The settings of a service where the file does not say.
const (
	serviceTimeout = 30 * time.Second
	healthInterval = time.Second
	healthTimeout  = 5 * time.Second
	healthRetries  = 3
)

func readServices(p *Parser, d *Draft, n *tree.Node) {
	d.Services, d.ImageServices = nil, nil
	if n.Kind != tree.List {
		p.Should("services", n, "a list of services, each with a name and a command")
		return
	}
	if len(n.Items) > maxServices {
		p.Errorf(n.At, "services has %d services: %d are enough for a job", len(n.Items), maxServices)
		return
	}
	for _, item := range n.Items {
		if p.options.Containers && isImage(item) {
			if s, ok := p.imageService(item); ok {
				d.ImageServices = append(d.ImageServices, s)
			}
			continue
		}
		s, ok := p.service(item)
		if !ok {
			continue
		}
		for _, other := range d.Services {
			if other.Name == s.Name {
				p.Errorf(item.At, "the name %s is that of another service of this job", words.Quote(s.Name))
			}
			if s.Address != "" && other.Address == s.Address {
				p.Errorf(item.At, "the services %s and %s cannot both answer at %s", other.Name, s.Name, s.Address)
			}
		}
		d.Services = append(d.Services, s)
	}
}

func (p *Parser) service(n *tree.Node) (pipeline.Service, bool) {
	s := pipeline.Service{Timeout: serviceTimeout, Pos: p.Pos(n.At)}
	if isImage(n) {
		p.Ignore(n.At, "a service as an image", "services are commands on this machine, with name, command and port; it is not started")
		p.Quietly(func() { p.imageService(n) })
		return s, false
	}
	ok := p.Fields("services", n, tree.Keys{
		"name":        func(n *tree.Node) { s.Name = p.serviceName(n) },
		"command":     func(n *tree.Node) { s.Command = strings.Join(p.script("a service's command", n), "\n") },
		"port":        func(n *tree.Node) { s.Address = p.address(n) },
		"timeout":     func(n *tree.Node) { s.Timeout, _ = p.Duration("a service's timeout", n, tree.MaxTimeout) },
		"variables":   func(n *tree.Node) { s.Variables = p.variables(n, false) },
		"healthcheck": func(*tree.Node) {}, // read below: it depends on port
	}, nil)
	for _, key := range []string{"name", "command"} {
		if ok && !n.Has(key) {
			p.Errorf(n.At, "a service needs a %s", key)
			ok = false
		}
	}
	if command := n.Field("command"); ok && command.Kind != tree.Invalid && strings.TrimSpace(s.Command) == "" {
		p.Errorf(command.At, "a service's command should not be empty")
	}
	if n.Has("timeout") && !n.Has("port") {
		p.Errorf(n.KeyAt("timeout"), "a service's timeout is for its port to answer: it needs a port")
	}
	s.Health = p.health(n.Field("healthcheck"), n.Has("port"))
	return s, ok
}

// isImage reports whether a service is one of GitLab's, an image. One that has a
// command and none of an image's keywords is one of cirunner's.
func isImage(n *tree.Node) bool {
	if n.Kind != tree.Mapping {
		return n.Kind == tree.Text
	}
	for _, key := range []string{"image", "alias", "entrypoint", "pull_policy", "docker", "kubernetes"} {
		if n.Has(key) {
			return true
		}
	}
	if strings.ContainsAny(n.Field("name").Text, ":/$") && !n.Has("port") {
		return true
	}
	argument := func(item *tree.Node) bool { return strings.HasPrefix(item.Text, "-") }
	if slices.ContainsFunc(n.Field("command").Items, argument) {
		return true // one command of an image in pieces, not several of bash
	}
	return n.Has("name") && !n.Has("command") && !n.Has("port") && !n.Has("healthcheck") && !n.Has("timeout")
}

var nameOfService = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

func (p *Parser) serviceName(n *tree.Node) string {
	name, ok := p.String("a service's name", n)
	if ok && !nameOfService.MatchString(name) {
		p.Errorf(n.At, "%s cannot be the name of a service: it should have letters, digits, _, . and -, at most 63", words.Quote(name))
	}
	return name
}

// address reads a port, or host:port. A value that has a variable in it can be judged
// only when that is known.
func (p *Parser) address(n *tree.Node) string {
	host, port := "127.0.0.1", n.Text
	if i := strings.LastIndex(n.Text, ":"); i >= 0 {
		var err error
		if host, port, err = net.SplitHostPort(n.Text); err != nil || host == "" {
			host, port = "", ""
		}
	}
	number, err := strconv.Atoi(port)
	right := err == nil && number >= 1 && number <= 65535 || strings.Contains(port, "$")
	if n.Kind != tree.Integer && n.Kind != tree.Text || !right || host == "" || strings.ContainsAny(host+port, " \t\n/") {
		p.Should("a service's port", n, "a number from 1 to 65535, or host:port")
		return ""
	}
	return net.JoinHostPort(host, port)
}

// health reads how a service is watched. One with a port is dialled unless the
// file says something else.
func (p *Parser) health(n *tree.Node, hasPort bool) pipeline.Health {
	h := pipeline.Health{Interval: healthInterval, Timeout: healthTimeout, Retries: healthRetries}
	switch {
	case n.Kind == tree.Null && !hasPort:
		return pipeline.Health{}
	case n.Kind == tree.Null:
		return h
	case n.Kind == tree.Boolean:
		if on, _ := p.Boolean("healthcheck", n); !on {
			return pipeline.Health{}
		}
		p.Should("healthcheck", n, "false, or a mapping of command, interval, timeout and retries")
		return h
	}
	p.Fields("healthcheck", n, tree.Keys{
		"command":  func(n *tree.Node) { h.Command = strings.Join(p.script("healthcheck:command", n), "\n") },
		"interval": func(n *tree.Node) { h.Interval, _ = p.Duration("healthcheck:interval", n, time.Hour) },
		"timeout":  func(n *tree.Node) { h.Timeout, _ = p.Duration("healthcheck:timeout", n, time.Hour) },
		"retries":  func(n *tree.Node) { h.Retries, _ = p.Integer("healthcheck:retries", n, 1, 1000) },
	}, nil)
	command := n.Field("command")
	switch {
	case n.Kind != tree.Mapping || command.Kind == tree.Invalid:
	case (command.Kind == tree.Text || command.Kind == tree.List) && strings.TrimSpace(h.Command) == "":
		p.Errorf(command.At, "healthcheck:command should not be empty")
	case command.Kind == tree.Null && !hasPort:
		p.Errorf(n.At, "a healthcheck needs a command, or the service a port to dial")
	}
	return h
}
