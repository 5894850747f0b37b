//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A Spec is what a container is made of.
type Spec struct {
	Name, Network, Image string
	Labels               []string // NAME=value, by which Sweep finds it
	Entrypoint           []string // nil for that of the image; a list of one empty text for none
	Command              []string // empty for that of the image
	User, Platform       string
	Variables            []string // NAME=value
	Mounts               []Mount
	Hosts                []string // NAME:ADDRESS
}

// A Mount is a directory of this machine that the container sees under the same path.
type Mount struct {
	Path     string
	ReadOnly bool
}

// A Container is one that was started.
type Container struct {
	*Engine
	Name string
	User string // of what is run in it; empty for that of the image
}

// Network makes the network of a job.
func (e *Engine) Network(ctx context.Context, name string, labels []string) error {
	command := []string{"network", "create"}
	for _, l := range labels {
		command = append(command, "--label", l)
	}
	_, err := e.ask(ctx, append(command, name)...)
	return err
}

// HasImage returns nil if the engine has an image. Its error says that there is none, or that the engine does not
// answer: only a person can tell the words of all clients apart.
func (e *Engine) HasImage(ctx context.Context, image string) error {
	_, err := e.ask(ctx, "image", "inspect", image)
	return err
}

// Pull fetches an image. The words of the client go to out.
func (e *Engine) Pull(ctx context.Context, image, platform string, out io.Writer) error {
	command := []string{"pull"}
	if platform != "" {
		command = append(command, "--platform", platform)
	}
	_, err := e.call(ctx, nil, out, append(command, image)...)
	return err
}

// An ImageConfig is what an image says of itself.
type ImageConfig struct {
	User  string
	Ports []int // TCP, ascending
}

// Inspect returns what an image says of itself.
func (e *Engine) Inspect(ctx context.Context, image string) (c ImageConfig, err error) {
	text, err := e.ask(ctx, "image", "inspect", "--format", "{{json .Config}}", image)
	if err != nil {
		return c, err
	}
	var read struct {
		User         string
		ExposedPorts map[string]any
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return c, fmt.Errorf("%s image inspect: %w", e.Client[0], err)
	}
	c.User = read.User
	for port := range read.ExposedPorts {
		number, kind, _ := strings.Cut(port, "/")
		if n, err := strconv.Atoi(number); err == nil && kind != "udp" {
			c.Ports = append(c.Ports, n)
		}
	}
	slices.Sort(c.Ports)
	return c, nil
}

// Start starts a container.
func (e *Engine) Start(ctx context.Context, s Spec) (*Container, error) {
	command := append([]string{"run", "--detach", "--name", s.Name, "--network", s.Network}, e.Run...)
	for _, l := range s.Labels {
		command = append(command, "--label", l)
	}
	for _, h := range s.Hosts {
		command = append(command, "--add-host", h)
	}
	for _, m := range s.Mounts {
		mount := fmt.Sprintf("type=bind,source=%s,target=%[1]s", m.Path)
		if m.ReadOnly {
			mount += ",readonly"
		}
		command = append(command, "--mount", mount)
	}
	for flag, value := range map[string]string{"--user": s.User, "--platform": s.Platform} {
		if value != "" {
			command = append(command, flag, value)
		}
	}
	args := s.Command
	if len(s.Entrypoint) > 0 {
		command = append(command, "--entrypoint", s.Entrypoint[0])
		args = append(s.Entrypoint[1:len(s.Entrypoint):len(s.Entrypoint)], args...)
	}
	flags, env := environ(s.Variables, visibly)
	command = append(append(append(command, flags...), s.Image), args...)
	_, err := e.call(ctx, env, nil, command...)
	return &Container{Engine: e, Name: s.Name, User: s.User}, err
}

// Running reports whether the container lives, and how it has ended if not. Its error says that the container is gone,
// or that the engine does not answer; the exit status of the client is not that of a script, and not in it.
func (c *Container) Running(ctx context.Context) (running bool, status string, err error) {
	text, err := c.ask(ctx, "inspect", "--format", "{{.State.Running}} {{.State.ExitCode}}", c.Name)
	if err != nil {
		return false, "", fmt.Errorf("cannot look at the container: %v", err)
	}
	state, code, _ := strings.Cut(text, " ")
	return state == "true", "exit status " + code, nil
}

// Address returns the address of the container in its network. One that has ended has none.
func (c *Container) Address(ctx context.Context) (string, error) {
	text, err := c.ask(ctx, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", c.Name)
	if err != nil {
		return "", err
	}
	address, _, _ := strings.Cut(text, " ")
	if net.ParseIP(address) == nil {
		running, status, err := c.Running(ctx)
		switch {
		case err != nil:
			return "", err
		case !running:
			return "", fmt.Errorf("has ended: %s", status)
		}
		return "", fmt.Errorf("%s has no address in its network", c.Name)
	}
	return address, nil
}

// Listens reports whether the container takes connections at a port: one is made from this
// machine, or, where its network cannot be reached from here, its table of sockets is
// looked at.
func (c *Container) Listens(ctx context.Context, address string, port int) bool {
	d := net.Dialer{Timeout: time.Second}
	if conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port))); err == nil {
		_ = conn.Close()
		return true
	}
	table, _ := c.ask(ctx, "exec", c.Name, "cat", "/proc/net/tcp", "/proc/net/tcp6")
	return listens(table, port)
}

// loopbacks are 127.0.0.1, ::1 and ::ffff:127.0.0.1 as Linux prints them in tables of sockets.
var loopbacks = []string{"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}

// listens reports whether a table of sockets, as Linux prints it, has one that listens at
// a port and not on the loopback alone.
func listens(table string, port int) bool {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "0A" {
			continue
		}
		local, hex, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseInt(hex, 16, 32); err == nil && int(n) == port && !slices.Contains(loopbacks, local) {
			return true
		}
	}
	return false
}

// A Script is what is run in a container.
type Script struct {
	Name      string // in errors
	Path      string // of a script, which the container sees
	Dir       string
	Variables []string
	Out       io.Writer
	Grace     time.Duration   // between TERM and KILL
	Hurry     context.Context // done when nobody waits for the grace any longer
	Started   func(pid int)   // of the client
}

// shell gives variables that were renamed their names back, and runs a script by bash where there is one, and by sh
// otherwise.
const shell = `CIRUNNER_SCRIPT=$1; shift; CIRUNNER_N=0; for CIRUNNER_NAME; do CIRUNNER_N=$((CIRUNNER_N + 1)); ` +
	`eval "export $CIRUNNER_NAME=\"\$CIRUNNER_VALUE_$CIRUNNER_N\"; unset CIRUNNER_VALUE_$CIRUNNER_N"; done; ` +
	`if command -v bash >/dev/null 2>&1; then exec bash "$CIRUNNER_SCRIPT"; else exec sh "$CIRUNNER_SCRIPT"; fi`

// Exec runs a script in the container, and blocks until that has ended and nothing of it is
// left. At the end of ctx all processes of the container but those that it waits by get TERM and, after
// the grace, KILL: the container stays, for the next script. The result and the error are
// as those of [proc.Run]; besides it is an error if the container or the client has not
// lasted.
func (c *Container) Exec(ctx context.Context, s Script) (result proc.Result, err error) {
	if ctx.Err() != nil {
		return proc.Result{Code: -1}, context.Cause(ctx)
	}
	var renamed renaming
	flags, env := environ(s.Variables, renamed.add)
	command := append([]string{"exec", "--workdir", s.Dir}, flags...)
	if c.User != "" {
		command = append(command, "--user", c.User)
	}
	command = append(append(command, c.Name, "sh", "-c", shell, "sh", s.Path), renamed.names...)
	stop := &stopping{c: c, grace: s.Grace, hurry: s.Hurry}
	steady := context.WithoutCancel(ctx)
	scopeErr := async.Scope(steady, func(scope context.Context) error {
		finished, finish := context.WithCancel(scope)
		defer finish()
		client, end := context.WithCancelCause(scope)
		defer end(nil)
		async.Go(scope, func(scope context.Context) error { stop.watch(ctx, scope, finished, end); return nil })
		result, err = proc.Run(client, proc.Command{
			Args: c.args(command...), Name: s.Name, Env: env, Stdout: s.Out, Stderr: s.Out, Grace: -1, Started: s.Started,
		})
		return nil
	})
	if scopeErr != nil && err == nil {
		err = scopeErr
	}
	result, err = stop.result(steady, s.Name, result, err)
	if left := c.kill(steady); left != nil && err == nil {
		err = fmt.Errorf("cannot end what the %s has left behind: %v", s.Name, left) // its exit status is not that of the script
	}
	return result, err
}

// Share lets every user of the container, and of this machine, write to the files in a
// directory.
func (c *Container) Share(ctx context.Context, dir string) error {
	_, err := c.ask(ctx, "exec", "--user", "0", c.Name, "chmod", "-R", "a+rwX", dir)
	return err
}
