//go:build unix

// Package engine runs containers through the command line of docker or podman.
//
// engine.go is the engine and which one answers, container.go a container and what is run
// in it, stop.go how that is stopped, logs.go what a container says, sweep.go how nothing is left. Whoever starts a
// container gives it the labels by which it is found again, also when the call that has started it was cut off.
package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/workdir"
	"github.com/ambit-go/ambit/proc"
)

// An Engine is the command line of docker or podman. Goroutines may share it.
type Engine struct {
	Client []string // the program and flags that stand before each command
	Run    []string // flags of each container that is started

	env []string // of the client; nil for that of this process
}

// addresses are the variables that tell a client where its engine is.
var addresses = []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINER_SSHKEY"}

// Record returns lines from which Recorded makes an engine that is the same, in another process.
func (e *Engine) Record() (lines []string) {
	for _, entry := range os.Environ() {
		if isAddress(entry) {
			lines = append(lines, entry)
		}
	}
	return append(lines, e.Client...)
}

// Recorded returns an engine of lines that Record has returned; nil if there are none.
func Recorded(lines []string) *Engine {
	e := &Engine{env: slices.DeleteFunc(os.Environ(), isAddress)}
	for i, line := range lines {
		if !isAddress(line) {
			e.Client = lines[i:]
			return e
		}
		e.env = append(e.env, line)
	}
	return nil
}

// isAddress reports whether an entry of an environment tells a client where its engine is.
func isAddress(entry string) bool {
	name, _, found := strings.Cut(entry, "=")
	return found && slices.Contains(addresses, name)
}

// names are the programs that are tried, in this order.
var names = []string{"docker", "podman"}

// patience is how long an engine may take to answer.
const patience = 30 * time.Second

// ErrNone is that no engine answers.
var ErrNone = errors.New("no container engine answers")

// Find returns the engine that answers: client, or without it the first of docker and
// podman. Its error matches ErrNone and says what each has answered; when ctx ends
// meanwhile it is the cause of that.
func Find(ctx context.Context, client, run []string) (*Engine, error) {
	clients := [][]string{client}
	if len(client) == 0 {
		clients = nil
		for _, name := range names {
			clients = append(clients, []string{name})
		}
	}
	err := ErrNone
	for _, c := range clients {
		e := &Engine{Client: c, Run: run}
		_, failed := e.ask(ctx, "ps", "--quiet")
		switch {
		case failed == nil:
			return e, nil
		case ctx.Err() != nil: // who was stopped has not learned whether there is an engine
			return nil, context.Cause(ctx)
		}
		err = fmt.Errorf("%w; %w", err, failed)
	}
	return nil, err
}

// args returns the arguments of a command of the client.
func (e *Engine) args(command ...string) []string {
	return append(e.Client[:len(e.Client):len(e.Client)], command...)
}

// ask runs a short command of the client and returns what that prints. Its error has what
// the client says is wrong.
func (e *Engine) ask(ctx context.Context, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.call(ctx, e.env, nil, command...)
}

// call runs a command of the client. The client writes to out, too, if that is not nil.
func (e *Engine) call(ctx context.Context, env []string, out io.Writer, command ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	c := proc.Command{
		Args: e.args(command...), Env: env, Stdout: &stdout, Stderr: &stderr, Grace: time.Second, Linger: -1,
		Name: e.Client[0] + " " + command[0],
	}
	if out != nil {
		c.Stdout, c.Stderr = out, io.MultiWriter(out, &stderr)
	}
	_, err := proc.Run(ctx, c)
	if said := lastLine(stderr.String()); err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return strings.TrimSpace(stdout.String()), err
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// environ returns flags that give variables to a container, and the environment that the
// client needs for it. A value is not among the arguments, where others would see it,
// unless a variable of this name would change the client itself: changing says how that is given.
func environ(variables []string, changing func(entry string) (flag, env string)) (flags, env []string) {
	env = os.Environ()
	for _, entry := range variables {
		name, _, _ := strings.Cut(entry, "=")
		if _, taken := os.LookupEnv(name); taken || changesClient(name) {
			name, entry = changing(entry)
		}
		flags = append(flags, "--env", name)
		if entry != "" {
			env = append(env, entry)
		}
	}
	return flags, env
}

// visibly gives a variable to a container among the arguments.
func visibly(entry string) (flag, env string) { return entry, "" }

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// A renaming gives variables to a container under names that no client reads, for a script to give them back.
type renaming struct{ names []string }

// add gives a variable whose name a shell does not know as it is: no shell would give the name back.
func (r *renaming) add(entry string) (flag, env string) {
	name, value, _ := strings.Cut(entry, "=")
	if !shellName.MatchString(name) {
		return visibly(entry)
	}
	r.names = append(r.names, name)
	flag = fmt.Sprintf("CIRUNNER_VALUE_%d", len(r.names))
	return flag, flag + "=" + value
}

// changesClient reports whether a client would read a variable of this name.
func changesClient(name string) bool {
	for _, prefix := range []string{"DOCKER_", "CONTAINER", "PODMAN_", "XDG_", "LD_", "BUILDAH_", "REGISTRY_AUTH_", "STORAGE_", "GO", "NOTIFY_", "DBUS_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch strings.ToUpper(name) {
	case workdir.TokenVariable: // the processes that look after a container are not the job's
		return true
	case "PATH", "HOME", "TMPDIR", "USER", "SHELL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE":
		return true
	}
	return false
}
