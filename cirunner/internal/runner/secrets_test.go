//go:build unix

package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A message of the runner about a job has no secret in it either: the names of artifacts and
// of caches may hold variables.
func TestSecretsAreInNothingThatIsSaidOfAJob(t *testing.T) {
	secret := func(j *pipeline.Job) {
		j.Variables = []pipeline.Variable{{Name: "TOKEN", Value: "hunter2000"}, {Name: "PIN", Value: "12"}}
		j.Artifacts.Paths = []string{"none-$TOKEN", "$TOKEN/../../x"}
		j.Caches = []pipeline.Cache{{Key: "for-$TOKEN", Paths: []string{"f"}, Policy: pipeline.CachePullPush, When: pipeline.Always}}
	}
	f := prepare(t, func(c *Config) { c.Mask, c.Caches = []string{"TOKEN", "PIN"}, t.TempDir() },
		jobOf("a", "touch f; printf hunter; printf 2000", secret),
		jobOf("b", "true", secret, func(j *pipeline.Job) {
			j.Services = []pipeline.Service{{Name: "s", Command: "sleep 600", Variables: j.Variables, Address: "$TOKEN:1:2", Timeout: time.Millisecond}}
		}))
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")
	f.is("b", plan.Failed, pipeline.SystemFailure, "")
	assert.Contains(t, f.log("a"), "[MASKED]\ncirunner: cache cache-for-[MASKED]: 1 file kept\n")
	assert.Contains(t, f.log("a"), "nothing in the job's directory matches none-[MASKED]\n")
	assert.Contains(t, f.log("a"), "cirunner: the value of PIN is too short to be masked: it has less than 4 bytes\n")
	assert.Contains(t, f.job("b").Why, "[MASKED]")
	for _, said := range []string{f.log("a"), f.log("b"), f.job("b").Why, f.job("b").Last} {
		assert.NotContains(t, said, "hunter2000")
	}
}
