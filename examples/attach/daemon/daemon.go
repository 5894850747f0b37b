//go:build unix

// Package daemon is a daemon that runs commands as Docker's runs containers,
// with that part of its HTTP API that a CI runner needs: create, attach, start,
// wait, stop, remove. A container is a process group, nothing more. It is there
// to show and to test a client: it can be told to misbehave, and leaves nothing
// behind.
//
// daemon.go is the API, attach.go the hijacked connection, container.go what
// runs.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Flaw is what is wrong with a daemon.
type Flaw string

// The flaws. A daemon with the empty one is as it should be.
const (
	// Silent takes requests and never answers.
	Silent Flaw = "silent"
	// NoStop never answers a request to stop, and does not stop.
	NoStop Flaw = "no-stop"
	// Cut breaks the connection in the middle of a frame, when the output has
	// become longer than 64 KiB.
	Cut Flaw = "cut"
	// Hasty closes the connection when the command has ended, whether it has
	// read all of its input or not, and only then tells the status.
	Hasty Flaw = "hasty"
	// NoEnd never ends the output of a command that has ended.
	NoEnd Flaw = "no-end"
)

// Flaws returns the names of all flaws.
func Flaws() []string {
	return []string{string(Silent), string(NoStop), string(Cut), string(Hasty), string(NoEnd)}
}

// A Daemon runs containers.
type Daemon struct {
	Flaw Flaw

	mu         sync.Mutex
	containers map[string]*container // by name
}

// Serve answers requests until ctx is done, and returns when all of them and
// all containers have ended. It closes l.
func (d *Daemon) Serve(ctx context.Context, l net.Listener) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		server := &http.Server{
			Handler:           d.handler(ctx),
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ReadHeaderTimeout: time.Minute,
		}
		async.OnExit(ctx, func(context.Context, error) error { d.close(); return nil })
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		err := server.Serve(l)
		if ctx.Err() != nil {
			return nil // it was closed for that
		}
		return err
	}, async.Name("daemon"), async.OnFailure(func(error) error { return nil }))
}

// close closes what the containers that were not removed hold.
func (d *Daemon) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.containers {
		c.close()
	}
}

// Names returns the names of the containers that are not removed.
func (d *Daemon) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.containers {
		names = append(names, name)
	}
	return names
}

// handler answers requests. The containers belong to owner. So does every
// request, by way of BaseContext: Serve waits for it, although package http
// does not wait for a connection that is hijacked.
func (d *Daemon) handler(owner context.Context) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			_ = async.Scope(r.Context(), func(ctx context.Context) error {
				if d.Flaw == Silent {
					<-ctx.Done()
					return nil
				}
				fail(w, f(w, r.WithContext(ctx)))
				return nil
			}, async.Name(pattern))
		})
	}
	handle("POST /containers/create", func(w http.ResponseWriter, r *http.Request) error { return d.create(owner, w, r) })
	handle("POST /containers/{name}/attach", d.attach)
	handle("POST /containers/{name}/start", d.start)
	handle("POST /containers/{name}/wait", d.wait)
	handle("POST /containers/{name}/stop", d.stop)
	handle("POST /containers/{name}/kill", d.kill)
	handle("DELETE /containers/{name}", d.remove)
	return mux
}

// A refusal is an error with an HTTP status.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// fail answers a request that has failed. A connection that was hijacked does
// not take it.
func fail(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	if no, ok := errors.AsType[*refusal](err); ok {
		status = no.status
	}
	answer(w, status, map[string]string{"message": err.Error()})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked has gone
}

// create makes a container under the name that is asked for.
func (d *Daemon) create(owner context.Context, w http.ResponseWriter, r *http.Request) error {
	var spec spec
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&spec); err != nil {
		return refuse(http.StatusBadRequest, "not a container: %v", err)
	}
	name := r.URL.Query().Get("name")
	if name == "" || len(spec.Cmd) == 0 {
		return refuse(http.StatusBadRequest, "a container needs a name and a command")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.containers[name] != nil {
		return refuse(http.StatusConflict, "there is a container %s", name)
	}
	if d.containers == nil {
		d.containers = make(map[string]*container)
	}
	c, err := newContainer(owner, spec)
	if err != nil {
		return err
	}
	d.containers[name] = c
	answer(w, http.StatusCreated, map[string]string{"Id": name})
	return nil
}

// find returns the container that a request is about.
func (d *Daemon) find(r *http.Request) (*container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.containers[r.PathValue("name")]; c != nil {
		return c, nil
	}
	return nil, refuse(http.StatusNotFound, "there is no container %s", r.PathValue("name"))
}

func (d *Daemon) start(w http.ResponseWriter, r *http.Request) error {
	c, err := d.find(r)
	if err == nil {
		err = c.start()
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (d *Daemon) wait(w http.ResponseWriter, r *http.Request) error {
	c, err := d.find(r)
	if err != nil {
		return err
	}
	status, err := c.exited.Wait(r.Context())
	if err == nil && d.Flaw == Hasty {
		_, err = c.left.Wait(r.Context())
	}
	if err == nil {
		answer(w, http.StatusOK, map[string]int{"StatusCode": status})
	}
	return err
}

// stop answers when the container has ended.
func (d *Daemon) stop(w http.ResponseWriter, r *http.Request) error {
	c, err := d.find(r)
	if err != nil {
		return err
	}
	if d.Flaw == NoStop {
		<-r.Context().Done()
		return nil
	}
	c.stop()
	if _, err = c.exited.Wait(r.Context()); err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// kill ends a container at once, and answers before it has ended.
func (d *Daemon) kill(w http.ResponseWriter, r *http.Request) error {
	c, err := d.find(r)
	if err == nil {
		c.kill()
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// remove ends a container at once and forgets it.
func (d *Daemon) remove(w http.ResponseWriter, r *http.Request) error {
	c, err := d.find(r)
	if err != nil {
		return err
	}
	c.kill()
	if _, err := c.exited.Wait(r.Context()); err != nil {
		return err
	}
	c.close()
	d.mu.Lock()
	delete(d.containers, r.PathValue("name"))
	d.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
	return nil
}
