package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/ambit-go/ambit/locks"
)

func init() {
	locks.Register("etcd", open)
	locks.Register("etcds", open)
}

// open returns the store at "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX", with a client of
// its own. The scheme etcds is that of TLS; ?ca=FILE has the certificates that are believed, and
// ?cert=FILE&key=FILE that of the client.
func open(ctx context.Context, raw string) (locks.Store, error) {
	config, prefix, err := parse(raw)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, classed(ctx, err)
	}
	var opts []Option
	if prefix != "" {
		opts = append(opts, Prefix(prefix+"/"))
	}
	s, err := New(ctx, client, opts...)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.own = true
	return s, nil
}

func invalid(why string) error { return &locks.ValidationError{What: "store", Why: why} }

// parse reads a URL. Its errors do not show it.
func parse(raw string) (config clientv3.Config, prefix string, err error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	user, hosts := "", ""
	rest, query, _ := strings.Cut(rest, "?")
	hosts, prefix, _ = strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, hosts = hosts[:at], hosts[at+1:]
	}
	values, err := url.ParseQuery(query)
	if err != nil || hosts == "" {
		return config, "", invalid("the URL is none of etcd: write it as etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX")
	}
	config = clientv3.Config{
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		})},
	}
	for host := range strings.SplitSeq(hosts, ",") {
		config.Endpoints = append(config.Endpoints, map[string]string{"etcd": "http://", "etcds": "https://"}[scheme]+host)
	}
	name, password, _ := strings.Cut(user, ":")
	if config.Username, err = url.PathUnescape(name); err == nil {
		config.Password, err = url.PathUnescape(password)
	}
	if err != nil {
		return config, "", invalid("user and password of the URL are not escaped as those of a URL are")
	}
	if scheme == "etcds" {
		config.TLS, err = secure(values)
	}
	return config, strings.Trim(prefix, "/"), err
}

// secure reads the files that a URL names.
func secure(values url.Values) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := values.Get("ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, locks.Invalid(err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, invalid("the file ca of the URL has no certificate")
		}
	}
	if values.Has("cert") || values.Has("key") {
		own, err := tls.LoadX509KeyPair(values.Get("cert"), values.Get("key"))
		if err != nil {
			return nil, locks.Invalid(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
