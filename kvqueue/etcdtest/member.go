//go:build linux

package etcdtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// memberEnv holds the settings of the member that a process is to be.
const memberEnv = "KVQUEUE_ETCD_MEMBER"

// settings are those of a member, as its process gets them.
type settings struct {
	Name    string
	Dir     string
	Client  string // URLs
	Peer    string
	Cluster string
	Quota   int64
	Sync    bool
	TLS     bool
}

// Main runs a member of etcd if this process was started to be one, and does not return
// then. Call it first in TestMain.
func Main() {
	text := os.Getenv(memberEnv)
	if text == "" {
		return
	}
	if err := run(text); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs a member until the process that has started this one closes its input, or ends.
func run(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-etcd.Err():
		return err
	case <-over:
		return nil
	}
	select {
	case err := <-etcd.Err():
		return err
	case <-over:
		return nil
	}
}

func (s settings) config() (*embed.Config, error) {
	client, err := url.Parse(s.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(s.Peer)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = s.Name, filepath.Join(s.Dir, "data"), s.Cluster
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.QuotaBackendBytes = s.Quota
	cfg.UnsafeNoFsync = !s.Sync
	cfg.ClientAutoTLS, cfg.SelfSignedCertValidity = s.TLS, 1
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // else each request is written to the log
	cfg.Metrics = "extensive"
	cfg.LogLevel, cfg.LogOutputs = "warn", []string{filepath.Join(s.Dir, "etcd.log")}
	return cfg, nil
}
