//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A client speaks to a daemon over its unix socket: a part of the HTTP API of
// Docker.
type client struct {
	socket string
	limit  time.Duration // of a request that need not wait for anything
	http   *http.Client
}

func newClient(socket string, limit time.Duration) *client {
	c := &client{socket: socket, limit: limit}
	c.http = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // no connection outlives its request
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	return c
}

// An APIError is a request that the daemon has refused.
type APIError struct {
	Request, Message string
	Status           int
}

func (e *APIError) Error() string {
	return fmt.Sprintf("%s: the daemon says %d: %s", e.Request, e.Status, e.Message)
}

// newAPIError reads the answer of a request that was refused.
func newAPIError(request string, resp *http.Response) error {
	var body struct{ Message string }
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // what there is has to do
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = string(bytes.TrimSpace(text))
	}
	return &APIError{request, body.Message, resp.StatusCode}
}

// do makes a request and reads the answer into answer, which may be nil. When
// ctx is done it comes back at once, with the cause.
func (c *client) do(ctx context.Context, method, path string, body, answer any) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://daemon"+path, &text)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotModified {
		return newAPIError(method+" "+path, resp)
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		return fmt.Errorf("%s %s: cannot read the answer: %w", method, path, err)
	}
	return nil
}

// soon makes a request that is given limit to be answered. A NoAnswerError says
// that it was not.
func (c *client) soon(ctx context.Context, limit time.Duration, method, path string, body, answer any) error {
	_, err := async.Start(ctx, func(ctx context.Context) error {
		return c.do(ctx, method, path, body, answer)
	}, async.Name(method+" "+path), async.Grace(limit)).Await(ctx, limit)
	return c.noAnswer(ctx, method+" "+path, limit, err)
}

// noAnswer puts the expiry of a limit into words.
func (c *client) noAnswer(ctx context.Context, request string, limit time.Duration, err error) error {
	if ctx.Err() == nil && errors.As(err, new(*async.TimeoutError)) {
		return &NoAnswerError{request, limit}
	}
	return err
}

// A spec is what a container is created from.
type spec struct {
	Image       string `json:",omitempty"`
	Cmd         []string
	OpenStdin   bool
	StdinOnce   bool // the end of our input is the end of its input
	AttachStdin bool
	StopTimeout int // seconds
}

// create makes a container. The name is ours, so that it can be removed even if
// the answer does not come.
func (c *client) create(ctx context.Context, name string, s spec) error {
	return c.soon(ctx, c.limit, "POST", "/containers/create?name="+url.QueryEscape(name), s, nil)
}

func (c *client) start(ctx context.Context, name string) error {
	return c.soon(ctx, c.limit, "POST", "/containers/"+name+"/start", nil, nil)
}

// wait returns the exit status of a container, when it has ended.
func (c *client) wait(ctx context.Context, name string) (int, error) {
	var answer struct{ StatusCode int }
	err := c.do(ctx, "POST", "/containers/"+name+"/wait", nil, &answer)
	return answer.StatusCode, err
}

// stop stops a container and returns when it has ended: after its grace at the
// latest, if the daemon does its part.
func (c *client) stop(ctx context.Context, name string, grace time.Duration) error {
	return c.soon(ctx, grace+c.limit, "POST", "/containers/"+name+"/stop", nil, nil)
}

// kill kills a container, and does not wait for its end. One that has ended
// already is refused, with 409, and is what was wanted.
func (c *client) kill(ctx context.Context, name string) error {
	err := c.soon(ctx, c.limit, "POST", "/containers/"+name+"/kill", nil, nil)
	if refused, ok := errors.AsType[*APIError](err); ok && refused.Status == http.StatusConflict {
		return nil
	}
	return err
}

func (c *client) remove(ctx context.Context, name string) error {
	return c.soon(ctx, c.limit, "DELETE", "/containers/"+name+"?force=1", nil, nil)
}

// A stream is a hijacked connection: what is written to it is the input of a
// container, what is read from it are the frames of its output.
type stream struct {
	*net.UnixConn
	r *bufio.Reader // holds what came along with the answer
}

// Read reads. A daemon that closes the connection before it has read all of our
// input resets it; on a unix socket that comes after all that it has written,
// so it is the end like any other.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// attach turns a connection into the input and output of a container. Package
// http would hide that one direction can be closed and the other read on, so
// the request is written by hand.
func (c *client) attach(ctx context.Context, name string) (*stream, error) {
	attaching := async.Execute(ctx, func(ctx context.Context) (*stream, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
		if err != nil {
			return nil, err
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // the rest looks at no context
		s, err := upgrade(conn.(*net.UnixConn), "/containers/"+name+"/attach?stream=1&stdin=1&stdout=1&stderr=1")
		if err != nil {
			_ = conn.Close()
		}
		return s, err
	}, async.Name("attach"), async.Grace(c.limit), async.OnDiscard(func(s *stream) { _ = s.Close() }))
	s, err := attaching.Await(ctx, c.limit)
	return s, c.noAnswer(ctx, "attach", c.limit, err)
}

// upgrade asks for a connection to be hijacked.
func upgrade(conn *net.UnixConn, path string) (*stream, error) {
	req, err := http.NewRequest("POST", "http://daemon"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, newAPIError("POST "+path, resp)
	}
	return &stream{conn, r}, nil
}
