package etcdstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// certificate writes a certificate for this machine, that signs itself, and its key. It is that of
// a server, of a client, and of who signs both.
func certificate(t *testing.T) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "locks"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "EC PRIVATE KEY", secret)
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	otherCert, otherKey := certificate(t)
	server := servers.EtcdTLS(t, cert, cert, key)
	s, err := locks.Open(t.Context(), server.URL+"?ca="+cert+"&cert="+cert+"&key="+key)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	m, err := locks.New(s)
	require.NoError(t, err)
	require.NoError(t, m.With(t.Context(), "k", func(context.Context) error { return nil }))
	for name, query := range map[string]string{
		"nobody has signed the server":  "?cert=" + cert + "&key=" + key,
		"another has signed the server": "?ca=" + otherCert + "&cert=" + cert + "&key=" + key,
	} {
		_, err := locks.Open(t.Context(), server.URL+query)
		for n := 0; n < 20 && strings.Contains(err.Error(), "handshake failed: context deadline"); n++ { // the machine is busy
			_, err = locks.Open(t.Context(), server.URL+query)
		}
		require.ErrorIs(t, err, locks.ErrUnavailable, name)
		require.ErrorContains(t, err, "certificate", name)
	}
	for name, query := range map[string]string{ // the server may say so after the client believes to be connected
		"there is none of the client": "?ca=" + cert,
		"it is another client":        "?ca=" + cert + "&cert=" + otherCert + "&key=" + otherKey,
	} {
		_, err := locks.Open(t.Context(), server.URL+query)
		require.ErrorIs(t, err, locks.ErrUnavailable, name)
	}
	for name, query := range map[string]string{
		"the key is of another": "?ca=" + cert + "&cert=" + cert + "&key=" + otherKey,
		"a key is no CA":        "?ca=" + key,
		"the key is missing":    "?ca=" + cert + "&cert=" + cert,
	} {
		_, err := locks.Open(t.Context(), server.URL+query)
		require.ErrorIs(t, err, locks.ErrValidation, name)
	}
}
