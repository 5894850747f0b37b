//go:build unix

package runner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The address of the job, by which scripts link to it.
func TestTheAddressOfAJob(t *testing.T) {
	f := prepare(t, nil, jobOf("a", `echo "url $CI_JOB_URL for $CI_JOB_ID"`))
	require.NoError(t, f.run())
	assert.Regexp(t, `url https://gitlab\.localhost/local/\d+/-/jobs/1001 for 1001\n`, f.log("a"))
}
