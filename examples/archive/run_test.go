package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"archive": main})
}

// A store keeps the last upload that has come as a whole.
type store struct {
	answer func(attempt int, body io.Reader) int // the status; 0: the body is read and kept

	mu     sync.Mutex
	tries  int
	whole  []byte
	broken int // uploads that broke off
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.tries++
	tries := s.tries
	s.mu.Unlock()
	if s.answer != nil {
		if status := s.answer(tries, r.Body); status != 0 {
			answerEarly(w, r.Body, status)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken++
		return
	}
	s.whole = body
}

// answerEarly answers before the body has come as a whole. A server that refuses takes what is on its way: it would else
// reset the connection, and the client could see that before the answer. One that believes to have all takes no more.
func answerEarly(w http.ResponseWriter, body io.Reader, status int) {
	w.Header().Set("Content-Length", "0")
	_ = http.NewResponseController(w).EnableFullDuplex()
	w.WriteHeader(status)
	if status >= 300 {
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, body)
	}
}

// state returns the last upload, and how many came and broke off.
func (s *store) state() (whole []byte, tries, broken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole, s.tries, s.broken
}

// files makes files to pack: 8 MB that gzip cannot make smaller, and a link. It is more than a system keeps of a
// connection on its way, so nothing is there as a whole before the server has read of it.
func files(t *testing.T) (dir string, content []byte) {
	t.Helper()
	dir, content = t.TempDir(), make([]byte, 8<<20)
	_, _ = rand.Read(content)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "out", "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "sub", "app"), content, 0o755))
	require.NoError(t, os.Symlink("sub/app", filepath.Join(dir, "out", "link")))
	return dir, content
}

// start uploads the files to the store.
func start(t *testing.T, dir string, s http.Handler, args ...string) *clitest.Process {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	args = append([]string{"-url", server.URL + "/a.tar.gz", "-pause", "1ms"}, args...)
	return clitest.Start(t, func(cmd *exec.Cmd) { cmd.Dir = dir }, "archive", append(args, "out")...)
}

// unpack returns what is in an archive: the names, and the content of the file.
func unpack(t *testing.T, whole []byte) (names []string, content []byte) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(whole))
	require.NoError(t, err)
	archive := tar.NewReader(zipped)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return names, content
		}
		require.NoError(t, err)
		names = append(names, h.Name+h.Linkname)
		if h.Typeflag == tar.TypeReg {
			content, err = io.ReadAll(archive)
			require.NoError(t, err)
		}
	}
}

// Whatever goes wrong with the first attempts: the archive that counts is whole.
func TestFaultsAreMadeGoodByAnotherAttempt(t *testing.T) {
	dir, want := files(t)
	t.Chdir(dir) // the path of a socket has to be short
	socket, err := net.Listen("unix", "out/socket")
	require.NoError(t, err)
	defer socket.Close()
	s := &store{answer: func(attempt int, body io.Reader) int {
		switch attempt {
		case 1: // the server is busy
			return http.StatusServiceUnavailable
		case 2: // the connection breaks half-way
			_, _ = io.CopyN(io.Discard, body, 1<<20)
			panic(http.ErrAbortHandler)
		case 3: // it takes a piece for the whole
			_, _ = io.CopyN(io.Discard, body, 1<<10)
			return http.StatusOK
		}
		return 0
	}}
	p := start(t, dir, s)
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	whole, tries, _ := s.state()
	assert.Equal(t, 4, tries, p.Stderr())
	names, content := unpack(t, whole)
	assert.Equal(t, []string{"out/", "out/linksub/app", "out/sub/", "out/sub/app"}, names)
	assert.True(t, bytes.Equal(want, content))
	assert.Contains(t, p.Stderr(), "503 Service Unavailable")
	assert.Contains(t, p.Stderr(), "out/socket is a socket, and left out\n")
	assert.Contains(t, p.Stderr(), "has all ")
}

// There is no use in another attempt, and the server has nothing that it takes for an archive.
func TestWhatCannotBeIsNotTriedAgain(t *testing.T) {
	dir, _ := files(t)
	t.Run("refused", func(t *testing.T) {
		s := &store{answer: func(int, io.Reader) int { return http.StatusForbidden }}
		p := start(t, dir, s)
		assert.Equal(t, 1, p.Wait())
		_, tries, _ := s.state()
		assert.Equal(t, 1, tries)
		assert.Contains(t, p.Stderr(), `"403 Forbidden"`)
	})
	t.Run("sent elsewhere", func(t *testing.T) { // to a page that is there
		uploads := &store{answer: func(int, io.Reader) int { return http.StatusFound }}
		p := start(t, dir, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				w.Header().Set("Location", "/login")
				uploads.ServeHTTP(w, r)
			}
		}))
		assert.Equal(t, 1, p.Wait())
		_, tries, _ := uploads.state()
		assert.Equal(t, 1, tries)
		assert.Contains(t, p.Stderr(), `"302 Found"`)
	})
	t.Run("too large", func(t *testing.T) {
		s := new(store)
		p := start(t, dir, s, "-most", "1000000")
		assert.Equal(t, 1, p.Wait())
		assert.Contains(t, p.Stderr(), "the archive is too large")
		clitest.Eventually(t, "the server has noticed", func() bool { _, _, broken := s.state(); return broken == 1 })
		whole, tries, _ := s.state()
		assert.Empty(t, whole)
		assert.Equal(t, 1, tries)
	})
	t.Run("not in time", func(t *testing.T) {
		gone := make(chan struct{})
		p := start(t, dir, &store{answer: func(int, io.Reader) int { <-gone; return 0 }}, "-limit", "100ms")
		assert.Equal(t, 124, p.Wait(), p.Stderr())
		close(gone)
	})
	t.Run("no such file", func(t *testing.T) {
		s := new(store)
		p := start(t, dir, s, "nowhere")
		assert.Equal(t, 1, p.Wait())
		assert.Contains(t, p.Stderr(), "packing: lstat nowhere: no such file or directory")
		whole, _, _ := s.state()
		assert.Empty(t, whole)
	})
}

// A cancel in the middle of an upload: the program ends at once, and the server does not have a piece for the whole.
func TestACancelBreaksTheUploadOff(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		dir, _ := files(t)
		reading, gone := make(chan struct{}), make(chan struct{})
		s := &store{answer: func(_ int, body io.Reader) int {
			_, _ = io.CopyN(io.Discard, body, 1<<10)
			close(reading)
			<-gone // it reads nothing: the upload hangs
			return 0
		}}
		p := start(t, dir, s)
		<-reading
		p.Signal(sig)
		assert.Equal(t, status, p.Wait(), p.Stderr())
		close(gone)
		clitest.Eventually(t, "the server has noticed", func() bool { _, _, broken := s.state(); return broken == 1 })
		whole, tries, _ := s.state()
		assert.Empty(t, whole)
		assert.Equal(t, 1, tries)
	})
}

func TestPackingEndsWithItsContext(t *testing.T) {
	dir, _ := files(t)
	t.Chdir(dir)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	assert.ErrorIs(t, pack(ctx, io.Discard, []string{"out"}), why)
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"out"}, {"-url", "http://127.0.0.1:1"}, {"-attempts", "0", "-url", "http://127.0.0.1:1", "out"}} {
		p := clitest.Start(t, nil, "archive", args...)
		assert.Equal(t, 2, p.Wait())
		assert.Equal(t, "archive: name files, and an address by -url\n", p.Stderr())
	}
}
