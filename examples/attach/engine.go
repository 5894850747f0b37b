//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// An engine speaks the API of docker, which podman has as well.
type engine struct {
	network, address string
	client           *http.Client
}

// newEngine takes tcp://host:port or unix:///path apart.
func newEngine(host string) (*engine, error) {
	network, address, ok := strings.Cut(host, "://")
	if !ok || network != "tcp" && network != "unix" {
		return nil, fmt.Errorf("%s: neither tcp:// nor unix://", host)
	}
	e := &engine{network: network, address: address}
	e.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		DisableKeepAlives: true,
	}}
	return e, nil
}

// A conn is a connection that was HTTP and is none any more. The bytes that came behind the answer are read first.
type conn struct {
	net.Conn
	r        *bufio.Reader
	terminal bool // the container has one
}

func (c *conn) Read(p []byte) (int, error) { return c.r.Read(p) }

// output copies the output of the container to its end. A terminal has one stream, which comes as it is; else it is in
// frames. The Content-Type does not say which: podman has the same one for both.
func (c *conn) output(stdout, stderr io.Writer) error {
	if c.terminal {
		_, err := io.Copy(stdout, c)
		return err
	}
	return demultiplex(c, stdout, stderr)
}

// CloseWrite says that there is no more input.
func (c *conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// attach asks for the streams of a container. The connection is taken over from HTTP: the server answers 101, and what
// follows is input one way and output the other.
func (e *engine) attach(ctx context.Context, container string) (*conn, error) {
	var it struct{ Config struct{ Tty bool } }
	if err := e.ask(ctx, http.MethodGet, container, "json", &it); err != nil {
		return nil, fmt.Errorf("attaching to %s: %w", container, err)
	}
	tcp, err := new(net.Dialer).DialContext(ctx, e.network, e.address)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = tcp.Close() })() // nothing below looks at ctx
	c := &conn{tcp, bufio.NewReader(tcp), it.Config.Tty}
	path := "/containers/" + url.PathEscape(container) + "/attach?stream=1&stdin=1&stdout=1&stderr=1"
	request, err := http.NewRequest(http.MethodPost, "http://engine"+path, nil)
	if err == nil {
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", "tcp")
		err = request.Write(tcp)
	}
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(c.r, request)
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && answer.StatusCode != http.StatusSwitchingProtocols:
		err = fmt.Errorf("%q", answer.Status)
	}
	if err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("attaching to %s: %w", container, err)
	}
	return c, nil
}

// kill sends a signal to a container.
func (e *engine) kill(ctx context.Context, container, signal string) error {
	return e.ask(ctx, http.MethodPost, container, "kill?signal="+signal, nil)
}

// wait waits for the end of a container, and returns its exit status.
func (e *engine) wait(ctx context.Context, container string) (status int, err error) {
	var end struct{ StatusCode int }
	err = e.ask(ctx, http.MethodPost, container, "wait", &end)
	return end.StatusCode, err
}

// ask makes a request about a container, and reads the answer into value.
func (e *engine) ask(ctx context.Context, method, container, what string, value any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://engine/containers/"+url.PathEscape(container)+"/"+what, nil)
	if err != nil {
		return err
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s: %q", what, answer.Status)
	}
	if value == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(value)
}

// demultiplex copies the output of a container: frames, each with a head of eight bytes, the stream and the length.
// An end within a frame is an error: output was lost.
func demultiplex(r io.Reader, stdout, stderr io.Writer) error {
	var head [8]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		w := stdout
		if head[0] == 2 {
			w = stderr
		}
		if _, err := io.CopyN(w, r, int64(binary.BigEndian.Uint32(head[4:]))); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
}
