package parse

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/stretchr/testify/require"
)

func right(t *testing.T, data string) *pipeline.Pipeline {
	t.Helper()
	p, err := Parse("f.yml", []byte(data))
	require.NoError(t, err)
	checkPipeline(t, p)
	return p
}

func names(jobs []*pipeline.Job) []string {
	var all []string
	for _, j := range jobs {
		all = append(all, j.Name)
	}
	return all
}

// values returns the variables of a job as NAME=value.
func values(j *pipeline.Job) []string {
	var all []string
	for _, v := range j.Variables {
		all = append(all, v.Name+"="+v.Value)
	}
	return all
}

func TestDefaultsOfAJob(t *testing.T) {
	p := right(t, "job:\n  script: make\n")
	require.Equal(t, []string{"build", "test", "deploy"}, p.Stages)
	require.Equal(t, &pipeline.Job{Name: "job", Key: "job", Stage: "test", StageIndex: 1, Pos: pipeline.Pos{File: "f.yml", Line: 1, Column: 1},
		Script: []string{"make"}, When: pipeline.OnSuccess, Artifacts: pipeline.Artifacts{When: pipeline.OnSuccess}, Watchdog: pipeline.Watchdog{Grace: -1}}, p.Jobs[0])
}

func TestStagesOrderJobs(t *testing.T) {
	p := right(t, `
stages: [one, two, three]
last: {script: x, stage: .post}
c: {script: x, stage: three}
b2: {script: x, stage: two, artifacts: {paths: [b]}}
b1: {script: x, stage: two}
a: {script: x, stage: one, artifacts: {paths: [a]}}
`)
	require.Equal(t, []string{"one", "two", "three", ".post"}, p.Stages)
	require.Equal(t, []string{"last", "c", "b2", "b1", "a"}, names(p.Jobs))
	require.Equal(t, []string{"b2", "b1", "a"}, names(p.Job("c").WaitsFor))
	require.Equal(t, []string{"b2", "a"}, names(p.Job("c").Fetch), "of those with artifacts")
	require.Equal(t, []string{"c", "b2", "b1", "a"}, names(p.Job("last").WaitsFor))
	require.Nil(t, p.Job("c").Needs)
}

func TestNeedsReplaceStages(t *testing.T) {
	p := right(t, `
stages: [one, two]
a: {script: x, stage: one, artifacts: {paths: [a]}}
b: {script: x, stage: one, artifacts: {paths: [b]}}
never: {script: x, stage: one, when: never}
at-once: {script: x, stage: two, needs: []}
same-stage: {script: x, stage: two, needs: [at-once]}
both: {script: x, stage: two, needs: [{job: b, artifacts: false}, a, {job: never, optional: true}, {job: nobody, optional: true}]}
of-one: {script: x, stage: two, dependencies: [b]}
of-none: {script: x, stage: two, dependencies: []}
`)
	require.Equal(t, []pipeline.Need{}, p.Job("at-once").Needs)
	require.Empty(t, p.Job("at-once").WaitsFor)
	require.Equal(t, []string{"at-once"}, names(p.Job("same-stage").WaitsFor))
	require.Equal(t, []string{"a", "b"}, names(p.Job("both").WaitsFor))
	require.Equal(t, []string{"a"}, names(p.Job("both").Fetch))
	require.Equal(t, []string{"b"}, names(p.Job("of-one").Fetch))
	require.Equal(t, []string{"a", "b"}, names(p.Job("of-none").WaitsFor))
	require.Empty(t, p.Job("of-none").Fetch)
	require.Nil(t, p.Job("never"), "a job that never runs is not there")
}

func TestParallelJobsAreTakenApart(t *testing.T) {
	p := right(t, `
variables: {B: global}
n: {script: x, stage: build, parallel: 2}
m:
  script: x
  stage: build
  variables: {A: job, C: job}
  parallel:
    matrix:
      - A: ["1", "2"]
        B: [x, y]
      - A: z
  services: [{name: s, command: serve, variables: {B: service}}]
all: {script: x, needs: [n, m]}
some: {script: x, needs: [n 2/2, {job: m, parallel: {matrix: [{A: "1"}, {A: z}]}}]}
`)
	require.Equal(t, []string{"n 1/2", "n 2/2", "m: [1, x]", "m: [1, y]", "m: [2, x]", "m: [2, y]", "m: [z]", "all", "some"}, names(p.Jobs))
	require.Equal(t, []string{"B=global", "CI_NODE_INDEX=2", "CI_NODE_TOTAL=2"}, values(p.Job("n 2/2")))
	require.Equal(t, []string{"B=y", "A=1", "C=job", "CI_NODE_INDEX=2", "CI_NODE_TOTAL=5"}, values(p.Job("m: [1, y]")))
	require.Equal(t, "service", p.Job("m: [1, y]").Services[0].Variables[0].Value)
	require.Equal(t, "m", p.Job("m: [z]").Key)
	require.Len(t, p.Job("all").WaitsFor, 7)
	require.Equal(t, []string{"n 2/2", "m: [1, x]", "m: [1, y]", "m: [z]"}, names(p.Job("some").WaitsFor))
}

func TestExtendsMergesMappingsAndReplacesLists(t *testing.T) {
	p := right(t, `
.root:
  script: [root]
  variables: {A: root, B: root}
  artifacts: {paths: [a, b], when: always}
.other: {extends: .root, variables: {B: other, C: other}, retry: {max: 2, when: always}}
.third: {variables: {C: third}, timeout: 1m}
job:
  extends: [.other, .third]
  variables: {D: job}
  artifacts: {paths: [c]}
  retry: {max: 1}
  timeout: null
`)
	j := p.Job("job")
	require.Equal(t, []string{"root"}, j.Script)
	require.Equal(t, []string{"A=root", "B=other", "C=third", "D=job"}, values(j))
	require.Equal(t, pipeline.Artifacts{Paths: []string{"c"}, When: pipeline.Always}, j.Artifacts)
	require.Equal(t, pipeline.Retry{Max: 1, When: []pipeline.Failure{pipeline.AnyFailure}}, j.Retry)
	require.Zero(t, j.Timeout, "null takes a keyword away")
}

func TestDefaultAndInherit(t *testing.T) {
	p := right(t, `
default: {before_script: [default], timeout: 1m, retry: 1}
after_script: [top]
variables: {A: "1", B: "2"}
all: {script: x}
own: {script: x, before_script: [], timeout: 2m}
none: {script: x, inherit: {default: false, variables: false}}
some: {script: x, inherit: {default: [retry], variables: [B]}}
`)
	require.Equal(t, []string{"default"}, p.Job("all").Before)
	require.Equal(t, []string{"top"}, p.Job("all").After)
	require.Empty(t, p.Job("own").Before)
	require.Equal(t, 2*time.Minute, p.Job("own").Timeout)
	require.Equal(t, 1, p.Job("own").Retry.Max)
	none, some := p.Job("none"), p.Job("some")
	require.Empty(t, none.Before)
	require.Empty(t, none.After)
	require.Empty(t, none.Variables)
	require.Empty(t, some.Before)
	require.Equal(t, 1, some.Retry.Max)
	require.Equal(t, []string{"B=2"}, values(some))
}

func TestAnchorsMergeKeysAndReferences(t *testing.T) {
	p := right(t, `
.setup: {script: [one, two], nested: {deep: [three]}}
.lines: &lines |
  first
  second
.list: &list [a, b]
.x: &x {stage: build, timeout: 1m, retry: 2}
.y: &y {timeout: 2m, interruptible: true}
job:
  <<: *x
  retry: 1
  <<: *y
  script: [*lines, *list, !reference [.setup, script], !reference [.setup, nested, deep], last]
whole: &whole {script: x, stage: deploy}
alias: *whole
list of two:
  <<: [*x, *y]
  script: !reference [whole, script]
`)
	j := p.Job("job")
	require.Equal(t, []string{"first\nsecond\n", "a", "b", "one", "two", "three", "last"}, j.Script)
	require.Equal(t, "build", j.Stage)
	require.Equal(t, 1, j.Retry.Max, "its own keys win")
	require.Equal(t, 2*time.Minute, j.Timeout, "of two merge keys the last wins")
	require.Equal(t, time.Minute, p.Job("list of two").Timeout, "of a list the first wins")
	require.True(t, p.Job("list of two").Interruptible)
	require.Equal(t, []string{"x"}, p.Job("list of two").Script)
	require.Equal(t, "deploy", p.Job("alias").Stage)
}

func TestKeywordsOfAJob(t *testing.T) {
	p := right(t, `
a:
  script: x
  when: manual
  timeout: 1h 30m
  retry: {max: 2, when: [script_failure, job_execution_timeout], exit_codes: [3, 4]}
  allow_failure: {exit_codes: 7}
  interruptible: yes
  artifacts: {name: n, paths: [out/, "*.log"], exclude: [out/tmp/**], when: on_failure, expire_in: 1 week}
  cirunner: {heartbeat: {file: beat, within: 5s}, silence: 1 minute, grace: 0s}
b: {script: x, when: manual}
c: {script: x, when: delayed, start_in: 30 seconds, allow_failure: true}
d: {script: x, variables: {N: 12, X: 1.5, T: true, Q: "0755", RAW: {value: $HOME, expand: false}}}
`)
	a := p.Job("a")
	require.Equal(t, pipeline.Manual, a.When)
	require.Equal(t, 90*time.Minute, a.Timeout)
	require.Equal(t, pipeline.Retry{Max: 2, When: []pipeline.Failure{pipeline.ScriptFailure, pipeline.TimeoutFailure}, ExitCodes: []int{3, 4}}, a.Retry)
	require.Equal(t, pipeline.AllowFailure{ExitCodes: []int{7}}, a.AllowFailure)
	require.True(t, a.Interruptible)
	require.Equal(t, pipeline.Artifacts{Paths: []string{"out/", "*.log"}, Exclude: []string{"out/tmp/**"}, When: pipeline.OnFailure}, a.Artifacts)
	require.Equal(t, pipeline.Watchdog{Heartbeat: "beat", HeartbeatWithin: 5 * time.Second, Silence: time.Minute, Grace: 0}, a.Watchdog)
	require.True(t, p.Job("b").AllowFailure.All, "a manual job holds nothing up")
	require.Equal(t, 30*time.Second, p.Job("c").StartIn)
	require.Equal(t, []string{"N=12", "X=1.5", "T=true", "Q=0755", "RAW=$HOME"}, values(p.Job("d")))
	require.True(t, p.Job("d").Variables[4].Raw)
}

func TestServicesOfAJob(t *testing.T) {
	p := right(t, `
job:
  script: x
  variables: {A: job}
  services:
    - {name: web, command: [one, two], port: 8123, timeout: 30s, variables: {A: service}}
    - {name: db, command: serve, port: "db.local:5432", healthcheck: {command: ping, interval: 500ms, timeout: 1s, retries: 2}}
    - {name: v6, command: serve, port: "[::1]:80", healthcheck: false}
    - {name: later, command: serve, port: $PORT}
    - {name: quiet, command: serve}
`)
	s := p.Job("job").Services
	require.Equal(t, pipeline.Service{Name: "web", Command: "one\ntwo", Variables: []pipeline.Variable{{Name: "A", Value: "service"}},
		Address: "127.0.0.1:8123", Timeout: 30 * time.Second,
		Health: pipeline.Health{Command: "", Interval: time.Second, Timeout: 5 * time.Second, Retries: 3}, Pos: pipeline.Pos{File: "f.yml", Line: 6, Column: 7}}, s[0])
	require.Equal(t, pipeline.Health{Command: "ping", Interval: 500 * time.Millisecond, Timeout: time.Second, Retries: 2}, s[1].Health)
	require.Equal(t, []string{"db.local:5432", "[::1]:80", "127.0.0.1:$PORT", ""}, []string{s[1].Address, s[2].Address, s[3].Address, s[4].Address})
	require.Zero(t, s[2].Health)
	require.Zero(t, s[4].Health)
}

func TestFilesThatCannotBeRead(t *testing.T) {
	_, err := ParseFile("testdata/nothing.yml")
	require.EqualError(t, err, "testdata/nothing.yml: cannot read it: no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ParseFile("testdata")
	require.ErrorContains(t, err, "testdata: cannot read it: is a directory")
	_, err = ParseFile("/dev/zero")
	require.ErrorContains(t, err, "/dev/zero:1:1: the file has more than 262144 bytes")
}

func TestALongLineIsClipped(t *testing.T) {
	found := wrong(t, "job: {script: x, retry: 9, variables: {A: "+strings.Repeat("ä", 500)+"}, timeout: soon}\n")
	require.Equal(t, "retry: 9", strings.TrimRight(found.Problems[0].Source[found.Problems[0].Caret-7:][:8], " "))
	last := found.Problems[1]
	require.Equal(t, []rune("soon}"), []rune(last.Source)[last.Caret:])
	require.LessOrEqual(t, len([]rune(last.Source)), tree.MaxSource)
}

// Needs may have lists in them, as references bring them in.
func TestNeedsInReferences(t *testing.T) {
	p := right(t, `
.common: {needs: [a, {job: b, optional: true}]}
a: {stage: build, script: x}
c: {stage: build, script: x}
j: {script: x, needs: [!reference [.common, needs], c]}
`)
	var all []string
	for _, need := range p.Job("j").Needs {
		all = append(all, need.Job.Name)
	}
	require.Equal(t, []string{"a", "c"}, all)
}

func TestEnvironments(t *testing.T) {
	p := right(t, `
a: {script: x, environment: prod}
b: {script: x, environment: {name: review/$B, url: "https://x", action: stop, deployment_tier: other, on_stop: c}}
c: {script: x}
`)
	require.Equal(t, pipeline.Environment{Name: "prod", Action: "start"}, p.Job("a").Environment)
	require.Equal(t, pipeline.Environment{Name: "review/$B", URL: "https://x", Action: "stop", Tier: "other"}, p.Job("b").Environment)
	require.Zero(t, p.Job("c").Environment)
}
