package pipeline

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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

func readServices(p *parser, d *draft, n *node) {
	d.Services, d.ImageServices = nil, nil
	if n.kind != list {
		p.should("services", n, "a list of services, each with a name and a command")
		return
	}
	if len(n.items) > maxServices {
		p.errorf(n.at, "services has %d services: %d are enough for a job", len(n.items), maxServices)
		return
	}
	for _, item := range n.items {
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
				p.errorf(item.at, "the name %s is that of another service of this job", quote(s.Name))
			}
			if s.Address != "" && other.Address == s.Address {
				p.errorf(item.at, "the services %s and %s cannot both answer at %s", other.Name, s.Name, s.Address)
			}
		}
		d.Services = append(d.Services, s)
	}
}

func (p *parser) service(n *node) (Service, bool) {
	s := Service{Timeout: serviceTimeout, Pos: p.pos(n.at)}
	if isImage(n) {
		p.ignore(n.at, "a service as an image", "services are commands on this machine, with name, command and port; it is not started")
		return s, false
	}
	ok := p.fields("services", n, keys{
		"name":        func(n *node) { s.Name = p.serviceName(n) },
		"command":     func(n *node) { s.Command = strings.Join(p.script("a service's command", n), "\n") },
		"port":        func(n *node) { s.Address = p.address(n) },
		"timeout":     func(n *node) { s.Timeout, _ = p.duration("a service's timeout", n, maxTimeout) },
		"variables":   func(n *node) { s.Variables = p.variables(n, false) },
		"healthcheck": func(*node) {}, // read below: it depends on port
	}, nil)
	for _, key := range []string{"name", "command"} {
		if ok && !n.has(key) {
			p.errorf(n.at, "a service needs a %s", key)
			ok = false
		}
	}
	if command := n.field("command"); ok && command.kind != invalid && strings.TrimSpace(s.Command) == "" {
		p.errorf(command.at, "a service's command should not be empty")
	}
	if n.has("timeout") && !n.has("port") {
		p.errorf(n.keyAt("timeout"), "a service's timeout is for its port to answer: it needs a port")
	}
	s.Health = p.health(n.field("healthcheck"), n.has("port"))
	return s, ok
}

// isImage reports whether a service is one of GitLab's, an image. One that has a
// command and none of an image's keywords is one of cirunner's.
func isImage(n *node) bool {
	if n.kind != mapping {
		return n.kind == text
	}
	for _, key := range []string{"image", "alias", "entrypoint", "pull_policy", "docker", "kubernetes"} {
		if n.has(key) {
			return true
		}
	}
	if strings.ContainsAny(n.field("name").text, ":/$") && !n.has("port") {
		return true
	}
	argument := func(item *node) bool { return strings.HasPrefix(item.text, "-") }
	if slices.ContainsFunc(n.field("command").items, argument) {
		return true // one command of an image in pieces, not several of bash
	}
	return n.has("name") && !n.has("command") && !n.has("port") && !n.has("healthcheck") && !n.has("timeout")
}

var nameOfService = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

func (p *parser) serviceName(n *node) string {
	name, ok := p.string("a service's name", n)
	if ok && !nameOfService.MatchString(name) {
		p.errorf(n.at, "%s cannot be the name of a service: it should have letters, digits, _, . and -, at most 63", quote(name))
	}
	return name
}

// address reads a port, or host:port. A value that has a variable in it can be judged
// only when that is known.
func (p *parser) address(n *node) string {
	host, port := "127.0.0.1", n.text
	if i := strings.LastIndex(n.text, ":"); i >= 0 {
		var err error
		if host, port, err = net.SplitHostPort(n.text); err != nil || host == "" {
			host, port = "", ""
		}
	}
	number, err := strconv.Atoi(port)
	right := err == nil && number >= 1 && number <= 65535 || strings.Contains(port, "$")
	if n.kind != integer && n.kind != text || !right || host == "" || strings.ContainsAny(host+port, " \t\n/") {
		p.should("a service's port", n, "a number from 1 to 65535, or host:port")
		return ""
	}
	return net.JoinHostPort(host, port)
}

// health reads how a service is watched. One with a port is dialled unless the
// file says something else.
func (p *parser) health(n *node, hasPort bool) Health {
	h := Health{Interval: healthInterval, Timeout: healthTimeout, Retries: healthRetries}
	switch {
	case n.kind == null && !hasPort:
		return Health{}
	case n.kind == null:
		return h
	case n.kind == boolean:
		if on, _ := p.boolean("healthcheck", n); !on {
			return Health{}
		}
		p.should("healthcheck", n, "false, or a mapping of command, interval, timeout and retries")
		return h
	}
	p.fields("healthcheck", n, keys{
		"command":  func(n *node) { h.Command = strings.Join(p.script("healthcheck:command", n), "\n") },
		"interval": func(n *node) { h.Interval, _ = p.duration("healthcheck:interval", n, time.Hour) },
		"timeout":  func(n *node) { h.Timeout, _ = p.duration("healthcheck:timeout", n, time.Hour) },
		"retries":  func(n *node) { h.Retries, _ = p.integer("healthcheck:retries", n, 1, 1000) },
	}, nil)
	command := n.field("command")
	switch {
	case n.kind != mapping || command.kind == invalid:
	case (command.kind == text || command.kind == list) && strings.TrimSpace(h.Command) == "":
		p.errorf(command.at, "healthcheck:command should not be empty")
	case command.kind == null && !hasPort:
		p.errorf(n.at, "a healthcheck needs a command, or the service a port to dial")
	}
	return h
}

// forPart returns the services with the variables of a part of the job.
func forPart(services []Service, variables []Variable) []Service {
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Variables = join(variables, s.Variables)
	}
	return services
}
