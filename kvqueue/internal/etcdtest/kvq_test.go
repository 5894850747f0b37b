//go:build linux

package etcdtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// buildKVQ returns the program.
func buildKVQ(t *testing.T) string {
	kvq := filepath.Join(t.TempDir(), "kvq")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", kvq, "./cmd/kvq")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return kvq
}

func TestTheCommandLineUsesAClusterWithTLSAndUsers(t *testing.T) {
	c, kvq := etcdtest.Start(t, 1, etcdtest.TLS()), buildKVQ(t)
	run := func(says string, args ...string) (out string, err error) {
		eventually(t, says, func() bool { // on a busy machine the program may give the cluster up
			cmd := exec.Command(kvq, args...)
			cmd.Env = append(os.Environ(), "KVQ_PASSWORD=secret")
			all, failed := cmd.CombinedOutput()
			out, err = string(all), failed
			return says == "" && err == nil || says != "" && strings.Contains(out, says) || !strings.Contains(out, "does not answer")
		})
		return out, err
	}
	at, cert := c.Endpoints()[0], c.Members[0].Certificate()
	out, err := run("", "put", "a", "-store", "etcd:https://"+at, "-cacert", cert)
	require.NoError(t, err, out)
	for says, args := range map[string][]string{
		"certificate":  {"-store", "etcd:https://" + at},
		"speaks TLS":   {"-store", "etcd:" + at},
		"no such file": {"-store", "etcd:https://" + at, "-cacert", "nowhere"},
	} {
		out, err := run(says, append([]string{"len"}, args...)...)
		require.Error(t, err)
		assert.Contains(t, out, says)
	}

	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(pem))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + at}, TLS: &tls.Config{RootCAs: roots}})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.UserAdd(t.Context(), "root", "secret")
	require.NoError(t, err)
	_, err = client.UserGrantRole(t.Context(), "root", "root")
	require.NoError(t, err)
	_, err = client.UserAdd(t.Context(), "nobody", "secret")
	require.NoError(t, err)
	_, err = client.AuthEnable(t.Context())
	require.NoError(t, err)
	for user, says := range map[string]string{"root": "1\n", "root:secret": "1\n", "root:wrong": "authentication failed", "": "user name is empty",
		"nobody": "grant it to read and write the keys that begin with"} {
		out, err := run(says, "len", "-store", "etcd:https://"+at, "-cacert", cert, "-user", user)
		assert.Contains(t, out, says)
		assert.Equal(t, says != "1\n", err != nil)
	}
}

func TestTheCommandLineUsesACluster(t *testing.T) {
	c, kvq := etcdtest.Start(t, 1), buildKVQ(t)
	endpoints := strings.Join(c.Endpoints(), ",")
	run := func(args ...string) (out string) {
		t.Helper()
		var err error
		var said string
		eventually(t, "the cluster answers", func() bool { // on a busy machine the program may give it up, before it does anything
			cmd := exec.Command(kvq, args...)
			cmd.Env = append(os.Environ(), "KVQ_STORE=etcd:"+endpoints)
			var errs strings.Builder // what it says of a slow cluster is there, too
			cmd.Stderr = &errs
			var all []byte
			all, err = cmd.Output()
			out, said = string(all), errs.String()
			return err == nil || !strings.Contains(said, "etcd at "+endpoints+" does not answer")
		})
		require.NoError(t, err, "%v: %s%s", args, out, said)
		return out
	}
	run("put", "a", "b")
	assert.Equal(t, "a", run("take", "-once", "--", "sh", "-c", `printf %s "$KVQ_ITEM"`))
	assert.Equal(t, "b\n", run("take", "-until-empty"))
	doctor := run("doctor")
	assert.Contains(t, doctor, "0 alarms")
	assert.Contains(t, doctor, "quota is 2048 MiB")
	assert.NotContains(t, doctor, "BAD")
	bench := run("bench", "-etcd", endpoints, "-items", "60", "-consumers", "3", "-limit", "1m")
	assert.Regexp(t, `kvqueue, a handle each +[1-9]`, bench)
	client := c.Client(t)
	left, err := client.Get(t.Context(), "kvq-bench", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	assert.Zero(t, left.Count, "bench deletes what it has written")
}
