//go:build linux

package etcdtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue/etcdtest"
)

func TestTheCommandLineUsesACluster(t *testing.T) {
	c := etcdtest.Start(t, 1)
	kvq := filepath.Join(t.TempDir(), "kvq")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", kvq, "./cmd/kvq")
	build.Dir, build.Env = "..", append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	endpoints := strings.Join(c.Endpoints(), ",")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(kvq, args...)
		cmd.Env = append(os.Environ(), "KVQ_STORE=etcd:"+endpoints)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
		return string(out)
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
