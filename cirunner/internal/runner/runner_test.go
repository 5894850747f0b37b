//go:build unix

package runner

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

func TestOneShellForBeforeScriptAndScript(t *testing.T) {
	f := prepare(t, nil, jobOf("a", "echo \"script sees $set\"", func(j *pipeline.Job) {
		j.Before = []string{"set=here; cd ..", "echo before"}
		j.After = []string{"echo \"after sees [$set] $CI_JOB_STATUS\"", "cat file.txt", "false"}
	}))
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")
	assert.Equal(t, `$ set=here; cd ..
$ echo before
before
$ echo "script sees $set"
script sees here
cirunner: after_script
$ echo "after sees [$set] $CI_JOB_STATUS"
after sees [] success
$ cat file.txt
of the project
$ false
cirunner: after_script, which does not count: after_script: exit status 1
cirunner: job succeeded
`, f.log("a"))
}

// The output of a script to its two files in turn is in the log in that order.
func TestTheLogKeepsTheOrderOfBothOutputs(t *testing.T) {
	f := prepare(t, nil, jobOf("a", "for i in {1..200}; do echo out $i; echo err $i >&2; done"))
	require.NoError(t, f.run())
	var want, got []string
	for i := range 200 {
		want = append(want, fmt.Sprintf("out %d", i+1), fmt.Sprintf("err %d", i+1))
	}
	for line := range strings.Lines(f.log("a")) {
		if f := strings.Fields(line); len(f) >= 2 && (f[len(f)-2] == "out" || f[len(f)-2] == "err") {
			got = append(got, strings.Join(f[len(f)-2:], " "))
		}
	}
	assert.Equal(t, want, got)
}

func TestAScriptEndsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	f := prepare(t, nil,
		jobOf("command", "(exit 3)\necho never"),
		jobOf("pipe", "false | cat; echo never"),
		jobOf("signal", "kill -KILL $$"),
		jobOf("stdin", "cat; echo end of stdin"),
		jobOf("unended", "printf 'the last line'"),
		jobOf("leaves", "(trap '' TERM; sleep 1000; sleep 1000) & echo bye", func(j *pipeline.Job) { j.Watchdog.Grace = 10 * time.Millisecond }),
		jobOf("allowed", "exit 7", func(j *pipeline.Job) { j.AllowFailure.ExitCodes = []int{7} }),
	)
	require.NoError(t, f.run())
	f.is("command", plan.Failed, pipeline.ScriptFailure, "exit status 3")
	f.is("pipe", plan.Failed, pipeline.ScriptFailure, "exit status 1")
	f.is("signal", plan.Failed, pipeline.ScriptFailure, "ended by SIGKILL")
	f.is("stdin", plan.Succeeded, plan.None, "")
	f.is("unended", plan.Succeeded, plan.None, "")
	f.is("leaves", plan.Succeeded, plan.None, "")
	assert.Contains(t, f.log("leaves"), "bye\ncirunner: the script: it left processes behind, which were ended\n")
	f.is("allowed", plan.Warned, pipeline.ScriptFailure, "exit status 7")
	assert.NotContains(t, f.log("command")+f.log("pipe"), "\nnever")
	assert.Contains(t, f.seenLines, "unended: the last line")
	assert.Contains(t, f.log("unended"), "\nthe last line\ncirunner:")
}

func TestVariables(t *testing.T) {
	t.Setenv("FROM_OUTSIDE", "outside")
	f := prepare(t, nil, jobOf("job: [a, 1]", `printf '%s\n' "$A" "$RAW" "$OUT" "$CI_JOB_NAME" "$CI_JOB_STAGE" "$CI" "$CI_PIPELINE_ID"
		test "$CI_PROJECT_DIR" = "$PWD" && test -f file.txt`,
		func(j *pipeline.Job) {
			j.Variables = []pipeline.Variable{
				{Name: "A", Value: "$B/${CI_JOB_STAGE}"}, {Name: "B", Value: "b $$"}, {Name: "RAW", Value: "$B", Raw: true},
				{Name: "OUT", Value: "$FROM_OUTSIDE"},
			}
		}))
	require.NoError(t, f.run())
	f.is("job: [a, 1]", plan.Succeeded, plan.None, "")
	assert.Contains(t, f.log("job: [a, 1]"), "b $/test\n$B\noutside\njob: [a, 1]\ntest\ntrue\n1\n")
}

func TestArtifactsGoToJobsThatNeedThem(t *testing.T) {
	f := prepare(t, nil,
		jobOf("make", "mkdir -p out && echo made > out/$CI_JOB_NAME.txt", func(j *pipeline.Job) {
			j.Artifacts.Paths = []string{"out/$CI_JOB_NAME.txt", "none/"}
		}),
		jobOf("fails", "echo report > report; exit 1", func(j *pipeline.Job) {
			j.Artifacts = pipeline.Artifacts{Paths: []string{"report"}, When: pipeline.OnFailure}
		}),
		jobOf("use", "cat out/make.txt; echo changed > out/make.txt", after("make")),
		jobOf("late", "cat out/make.txt report", after("make", "fails", "use"), func(j *pipeline.Job) { j.When = pipeline.Always }),
		jobOf("not", "test ! -e out", after()),
	)
	require.NoError(t, f.run())
	f.is("use", plan.Succeeded, plan.None, "")
	f.is("late", plan.Succeeded, plan.None, "")
	f.is("not", plan.Succeeded, plan.None, "")
	assert.Contains(t, f.log("make"), "nothing in the job's directory matches none/\ncirunner: 1 artifact kept\n")
	assert.Contains(t, f.log("use"), "cirunner: 1 artifact from \"make\"\n")
	assert.Contains(t, f.log("late"), "made\nreport\n")
}

func TestRetriesGoOnWithTheSameLog(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	f := prepare(t, nil, jobOf("flaky", fmt.Sprintf("echo x >> %s; test $(wc -l < %[1]s) = 3", count), func(j *pipeline.Job) {
		j.Retry = pipeline.Retry{Max: 2, When: []pipeline.Failure{pipeline.ScriptFailure}}
	}), jobOf("hopeless", "exit 1", func(j *pipeline.Job) { j.Retry.Max = 1 }))
	require.NoError(t, f.run())
	f.is("flaky", plan.Succeeded, plan.None, "")
	f.is("hopeless", plan.Failed, pipeline.ScriptFailure, "exit status 1")
	assert.Equal(t, 3, f.job("flaky").Attempt)
	assert.Equal(t, 2, f.job("hopeless").Attempt)
	assert.Equal(t, 2, strings.Count(f.log("flaky"), "script_failure: exit status 1"))
	assert.Contains(t, f.log("flaky"), "cirunner: attempt 3\n")
}

// The script ignores TERM, and so does its child, which holds the output. The time is up when the test says so, not by a
// clock: the script has come to its trap then.
func TestATimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	stubborn := "trap '' TERM; (trap '' TERM; sleep 1000) & echo started; sleep 1000; sleep 1000"
	polite := "trap 'echo tidy; exit 9' TERM; bash -c 'echo started; exec sleep 1000' & wait"
	both := func(j *pipeline.Job) {
		j.Interruptible, j.Watchdog.Grace = true, 100*time.Millisecond
		j.After = []string{"echo after $CI_JOB_STATUS"}
	}
	f := prepare(t, nil, jobOf("stubborn", stubborn, both),
		jobOf("polite", polite, both, func(j *pipeline.Job) { j.Watchdog.Grace = time.Minute }))
	require.NoError(t, f.run(func(ctx context.Context) {
		for i, name := range []string{"stubborn", "polite"} {
			f.when(name, "started", func() { async.Go(ctx, func(context.Context) error { f.expire(i, time.Hour); return nil }) })
		}
	}))
	f.is("stubborn", plan.Failed, pipeline.TimeoutFailure, "the script took longer than 1h0m0s, and ignored TERM: killed")
	f.is("polite", plan.Failed, pipeline.TimeoutFailure, "the script took longer than 1h0m0s, exit status 9")
	assert.Contains(t, f.log("polite"), "tidy\n")
	assert.Contains(t, f.log("stubborn"), "after failed\n")
}

// expire ends a job that is interruptible as its timeout does.
func (f *fixture) expire(i int, limit time.Duration) {
	f.Runner.mu.Lock()
	defer f.Runner.mu.Unlock()
	f.givers[i](&timeLimit{"the script", limit})
}

func TestAScriptHasATimeout(t *testing.T) {
	t.Parallel()
	f := prepare(t, nil, jobOf("own", "sleep 1000", func(j *pipeline.Job) { j.Timeout = 200 * time.Millisecond }))
	require.NoError(t, f.run())
	f.is("own", plan.Failed, pipeline.TimeoutFailure, "the script took longer than 200ms")
	f = prepare(t, func(c *Config) { c.Timeout = 100 * time.Millisecond }, jobOf("that of the run", "sleep 1000"))
	require.NoError(t, f.run())
	f.is("that of the run", plan.Failed, pipeline.TimeoutFailure, "the script took longer than 100ms")
}

func TestAfterScriptHasALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	f := prepare(t, func(c *Config) { c.After = 200 * time.Millisecond },
		jobOf("a", "true", func(j *pipeline.Job) { j.After = []string{"sleep 1000"} }))
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")
	// On a machine that is slow to start it, it is not started.
	assert.Regexp(t, "does not count: (after_script: ended by SIGTERM, stopped: )?after_script took longer than 200ms\n", f.log("a"))
}

func TestWatchdogs(t *testing.T) {
	t.Parallel()
	grace := func(j *pipeline.Job) { j.Watchdog.Grace = time.Minute }
	f := prepare(t, func(c *Config) { c.Concurrent = 4 },
		jobOf("silent", "echo one; sleep 1000", grace, func(j *pipeline.Job) { j.Watchdog.Silence = 300 * time.Millisecond }),
		jobOf("talks", "for i in {1..8}; do sleep 0.1; echo $i; done", grace, func(j *pipeline.Job) { j.Watchdog.Silence = time.Minute }),
		jobOf("heart stops", "touch beat; sleep 1000", grace, func(j *pipeline.Job) {
			j.Watchdog.Heartbeat, j.Watchdog.HeartbeatWithin = "beat", 300*time.Millisecond
		}),
		jobOf("heart beats", "for i in {1..8}; do touch beat; sleep 0.1; done", grace, func(j *pipeline.Job) {
			j.Watchdog.Heartbeat, j.Watchdog.HeartbeatWithin = "beat", time.Minute
		}),
	)
	require.NoError(t, f.run())
	f.is("silent", plan.Failed, pipeline.StuckFailure, "it printed nothing for 300ms")
	// A script that was not started within that time has no end.
	assert.Regexp(t, "for 300ms(, ended by SIGTERM)?$", f.job("silent").Why)
	f.is("talks", plan.Succeeded, plan.None, "")
	f.is("heart stops", plan.Failed, pipeline.StuckFailure, "beat was not touched for")
	f.is("heart beats", plan.Succeeded, plan.None, "")
}

func TestJobsRunAtOnceButNoMoreThanAllowed(t *testing.T) {
	t.Parallel()
	var jobs []*pipeline.Job
	slots := t.TempDir()
	for i := range 200 {
		jobs = append(jobs, jobOf(fmt.Sprint("job ", i), fmt.Sprintf("mkdir %s/%d; ls %[1]s | wc -l; rmdir %[1]s/%[2]d", slots, i)))
	}
	f := prepare(t, nil, jobs...)
	require.NoError(t, f.run())
	assert.Equal(t, 2, f.most)
	requireFileOrder(t, f.began, 2)
	for _, j := range jobs {
		f.is(j.Name, plan.Succeeded, plan.None, "")
		n := strings.Fields(strings.Split(f.log(j.Name), "\n")[1])[0]
		assert.Contains(t, []string{"1", "2"}, n, "that many at once were seen from inside")
	}
}

// requireFileOrder holds that jobs were taken in the order of the file. A worker may take a job
// and be held up before it begins it, so one fewer than the workers may be passed at any time.
func requireFileOrder(t *testing.T, began []string, workers int) {
	t.Helper()
	passed := map[string]bool{}
	next := 0
	for _, name := range began {
		for ; name != fmt.Sprint("job ", next) && !passed[name]; next++ {
			passed[fmt.Sprint("job ", next)] = true
			require.Less(t, len(passed), workers, "%s began before all of %v", name, passed)
		}
		if passed[name] {
			delete(passed, name)
		} else {
			next++
		}
	}
	require.Empty(t, passed)
}

func TestADelayedJobStartsLater(t *testing.T) {
	t.Parallel()
	f := prepare(t, nil, jobOf("late", "true", func(j *pipeline.Job) {
		j.When, j.StartIn = pipeline.Delayed, 200*time.Millisecond
	}), jobOf("never", "true", func(j *pipeline.Job) { j.When = pipeline.Manual }))
	begin := time.Now()
	require.NoError(t, f.run())
	f.is("late", plan.Succeeded, plan.None, "")
	assert.GreaterOrEqual(t, f.job("late").Begin.Sub(begin), 200*time.Millisecond)
	f.is("never", plan.Manual, plan.None, "only when asked for")
}

// The project has no repository of its own, but lies in one.
func TestAJobDoesNotSeeTheRepositoryAround(t *testing.T) {
	f := prepare(t, nil, jobOf("a", "! git rev-parse --git-dir"))
	out, err := exec.Command("git", "init", "-q", filepath.Dir(f.dir)).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")
}

// A script that deploys reads its environment from variables, which may refer to each
// other and to those of the job. The variable of the job itself is stronger.
func TestVariablesOfTheEnvironment(t *testing.T) {
	show := `echo "$CI_ENVIRONMENT_NAME|$CI_ENVIRONMENT_SLUG|$CI_ENVIRONMENT_URL|$CI_ENVIRONMENT_ACTION|$CI_ENVIRONMENT_TIER|"`
	f := prepare(t, nil,
		jobOf("a", show, func(j *pipeline.Job) {
			j.Variables = []pipeline.Variable{{Name: "WHERE", Value: "staging"}, {Name: "CI_ENVIRONMENT_TIER", Value: "own"}}
			j.Environment = pipeline.Environment{Name: "$WHERE", URL: "https://$CI_ENVIRONMENT_SLUG.$WHERE.example", Action: "stop", Tier: "other"}
		}),
		jobOf("b", show))
	require.NoError(t, f.run())
	assert.Contains(t, f.log("a"), "\nstaging|staging|https://staging.staging.example|stop|own|\n")
	assert.Contains(t, f.log("b"), "\n|||||\n")
}
