package asyncz_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asyncz"
)

// A web site cannot read the page through a name of its own that leads to loopback.
func TestHosts(t *testing.T) {
	own := httptest.NewServer(asyncz.Handler())
	defer own.Close()
	any := httptest.NewServer(asyncz.Handler(asyncz.AnyHost()))
	defer any.Close()
	for host, ours := range map[string]bool{
		"localhost": true, "LOCALHOST:6060": true, "127.0.0.1:1": true, "127.9.9.9": true, "[::1]:80": true, "[::1]": true,
		"evil.example": false, "evil.example:6060": false, "10.0.0.1": false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false, "0.0.0.0": false,
	} {
		for server, status := range map[*httptest.Server]int{
			own: map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[ours], any: http.StatusOK,
		} {
			r, err := http.NewRequest(http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			r.Host = host
			answer, err := server.Client().Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, status, answer.StatusCode, host)
		}
	}
}

// A request without a host, as HTTP/1.0 allows, is refused on loopback.
func TestARequestWithoutAHost(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = ""
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	w := httptest.NewRecorder()
	asyncz.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
}

// Whoever may open a unix socket may name any host.
func TestAUnixSocket(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "asyncz"))
	if err != nil {
		t.Skip(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: asyncz.Handler()}}
	server.Start()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", l.Addr().String())
	}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://any.example/")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestThePageOnlyReads(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		w := httptest.NewRecorder()
		asyncz.Handler().ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
	_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, "/debug/async/", nil))
	require.Empty(t, pattern, "it registers itself nowhere")
	require.Panics(t, func() { asyncz.Handler(nil) })
}

// The policy allows the one script and the one style of the document, and nothing else.
func TestPolicy(t *testing.T) {
	w := get(t, asyncz.Handler())
	policy := w.Header().Get("Content-Security-Policy")
	for _, tag := range []string{"script", "style"} {
		found := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(w.Body.String(), -1)
		require.Len(t, found, 1)
		sum := sha256.Sum256([]byte(found[0][1]))
		require.Contains(t, policy, tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.NotContains(t, policy, "unsafe")
	require.NotRegexp(t, `\s(style|on\w+)="`, w.Body.String(), "what the policy would forbid")
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.Equal(t, "DENY", w.Header().Get("X-Frame-Options"))
}
