package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsWrongWithTLSIsSaid(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	assert.ErrorContains(t, reach(t.Context(), time.Minute, s.URL, &tls.Config{RootCAs: known}), "certificate required")
	assert.ErrorContains(t, reach(t.Context(), time.Minute, s.URL, &tls.Config{}), "-cacert names")

	deaf, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and says nothing, as a member that is stopped
	require.NoError(t, err)
	defer deaf.Close()
	err = reach(t.Context(), silent, "https://"+deaf.Addr().String(), &tls.Config{RootCAs: known})
	assert.Error(t, err)
	assert.NotContains(t, err.Error(), "-cacert")
}

func TestACertificateAndItsKeyBelongTogether(t *testing.T) {
	for _, a := range []access{{cert: "c"}, {key: "k"}} {
		_, err := a.config([]string{"https://127.0.0.1:1"})
		assert.ErrorContains(t, err, "-cert and -key belong together")
	}
}
