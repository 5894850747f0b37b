//go:build unix

package runner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// Other jobs get nothing of an attempt that another has taken the place of: neither artifacts that the last attempt does
// not keep, nor variables, where that has not come as far as to report any.
func TestNothingIsLeftOfAnAttemptThatWasMadeAgain(t *testing.T) {
	again := func(j *pipeline.Job) { j.Retry.Max = 1 }
	f := prepare(t, nil,
		jobOf("core", "echo core > core; test $CI_JOB_ATTEMPT = 2", again, func(j *pipeline.Job) {
			j.Artifacts = pipeline.Artifacts{Paths: []string{"core"}, When: pipeline.OnFailure}
		}),
		jobOf("url", "echo URL=first > vars; exit 1", again, with(freeAddress(t), "test $CI_JOB_ATTEMPT = 1; "+server), func(j *pipeline.Job) {
			j.AllowFailure.All = true
			j.Artifacts.Dotenv = []string{"vars"}
		}),
		jobOf("use", `test ! -e core; test -z "$URL"`, after("core", "url")),
	)
	require.NoError(t, f.run())
	f.is("use", plan.Succeeded, "", "")
}
