package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ambit-go/ambit/kvqueue/etcdkv"
)

// An access is how a cluster knows this program.
type access struct{ ca, cert, key, user string }

func (a *access) flags(f *flag.FlagSet) {
	f.StringVar(&a.ca, "cacert", "", "the `file` of the authorities whose certificates of etcd are believed; without it those of the system are")
	f.StringVar(&a.cert, "cert", "", "the `file` of the certificate that etcd is shown")
	f.StringVar(&a.key, "key", "", "the `file` of the key of that certificate")
	f.StringVar(&a.user, "user", "", "the `name[:password]` of a user of etcd; without one the password is that of $KVQ_PASSWORD")
}

// config returns the settings of TLS; nil: there is none.
func (a *access) config(endpoints []string) (*tls.Config, error) {
	secure := a.ca+a.cert+a.key != ""
	for _, e := range endpoints {
		secure = secure || strings.HasPrefix(e, "https://")
	}
	if !secure {
		return nil, nil
	}
	if (a.cert == "") != (a.key == "") {
		return nil, usagef("-cert and -key belong together: the certificate that etcd is shown, and its key")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, usagef("-cacert: %v", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, usagef("-cacert: %s has no certificate in PEM", a.ca)
		}
	}
	if a.cert != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, usagef("-cert and -key: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func openEtcd(ctx context.Context, endpoints []string, how access) (*store, error) {
	secure, err := how.config(endpoints)
	if err != nil {
		return nil, err
	}
	user, password, given := strings.Cut(how.user, ":")
	if !given {
		password = os.Getenv("KVQ_PASSWORD")
	}
	name := "etcd at " + strings.Join(endpoints, ", ")
	fail := func(err error) error {
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			return fmt.Errorf("%s refuses this user: grant it to read and write the keys that begin with those of the queues (-prefix), and the key of one zero byte: %w", name, err)
		}
		for _, e := range endpoints {
			err = errors.Join(err, reach(ctx, silent, e, secure))
		}
		return fmt.Errorf("%s does not answer: %w", name, err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          dialPatience,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		TLS:                  secure,
		Username:             user,
		Password:             password,
		Logger:               zap.NewNop(), // what comes of its attempts is in the errors
	})
	if err != nil {
		return nil, fail(err)
	}
	kv := etcdkv.New(client, etcdkv.Timeout(dialPatience))
	first, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	if _, _, err := kv.Read(first); err != nil {
		return nil, errors.Join(fail(err), client.Close())
	}
	return &store{kv: etcdkv.New(client), name: name, close: client.Close, etcd: client}, nil
}

// reach says why an endpoint cannot be talked to: the client says only that it took too long. Each of its two steps
// may take that long.
func reach(ctx context.Context, patience time.Duration, endpoint string, secure *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, host, found := strings.Cut(endpoint, "://")
	if !found {
		host = endpoint
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	defer func() { _ = conn.Close() }()
	if secure == nil {
		if tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) == nil { // nothing is sent on it
			return fmt.Errorf("%s speaks TLS: write it as https://%s, with -cacert, -cert and -key as it needs them", endpoint, host)
		}
		return nil
	}
	c := secure.Clone()
	if c.ServerName, _, err = net.SplitHostPort(host); err != nil {
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	over := tls.Client(conn, c)
	switch err = over.HandshakeContext(ctx); {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("%s: %w; -cacert names whose certificates are believed", endpoint, err)
	case err != nil:
		return fmt.Errorf("%s: TLS: %w", endpoint, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience)) // a server that does not believe us says so after the handshake
	if _, err = over.Read(make([]byte, 1)); err != nil && strings.Contains(err.Error(), "remote error") {
		return fmt.Errorf("%s: %w; -cert and -key are what etcd is shown", endpoint, err)
	}
	return nil
}
