package redisstore_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// The error says it: what the client library writes besides is nobody's.
func TestAServerThatIsNotThereIsToldByTheErrorAlone(t *testing.T) {
	if os.Getenv("REDISSTORE_QUIET") != "" { // the process whose stderr is read
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := taskqueue.Open(ctx, "redis://127.0.0.1:1/0")
		require.ErrorContains(t, err, "refused")
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "REDISSTORE_QUIET=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "dial")
}
