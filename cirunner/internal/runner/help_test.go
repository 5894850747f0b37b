//go:build unix

package runner

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/scripttest"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"serve": serve}) }

// A fixture is a run in a test.
type fixture struct {
	*Runner
	t   *testing.T
	dir string
	watcher
}

// jobOf returns a job with defaults as the parser has them.
func jobOf(name, script string, changes ...func(*pipeline.Job)) *pipeline.Job {
	j := &pipeline.Job{
		Name: name, Key: name, Stage: "test", Script: []string{script}, When: pipeline.OnSuccess,
		Watchdog: pipeline.Watchdog{Grace: -1}, Artifacts: pipeline.Artifacts{When: pipeline.OnSuccess},
	}
	for _, change := range changes {
		change(j)
	}
	return j
}

// after has a job wait for others, as needs do.
func after(names ...string) func(*pipeline.Job) {
	return func(j *pipeline.Job) {
		j.Needs = []pipeline.Need{}
		for _, n := range names {
			j.Needs = append(j.Needs, pipeline.Need{Job: &pipeline.Job{Name: n}, Artifacts: true})
		}
	}
}

// prepare makes a run of these jobs, in one stage.
func prepare(t *testing.T, change func(*Config), jobs ...*pipeline.Job) *fixture {
	t.Helper()
	p := &pipeline.Pipeline{File: "ci.yml", Stages: []string{"test"}, Jobs: jobs}
	for i, j := range jobs {
		j.Index = i
		for k := range j.Needs {
			j.Needs[k].Job = p.Job(j.Needs[k].Job.Name)
			j.WaitsFor = append(j.WaitsFor, j.Needs[k].Job)
			j.Fetch = append(j.Fetch, j.Needs[k].Job)
		}
	}
	f := &fixture{t: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "file.txt"), []byte("of the project\n"), 0o644))
	work, _, err := workdir.Open(f.dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, work.Close(false)) })
	c := Config{
		Pipeline: p, Work: work, Watch: &f.watcher, Concurrent: 2, Logs: work.Path("logs"),
		Timeout: time.Minute, After: time.Minute, Grace: 10 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	f.Runner = New(c)
	return f
}

// run runs it to its end and checks that no process is left.
func (f *fixture) run(control ...func(ctx context.Context)) error {
	f.t.Helper()
	err := f.Run(f.t.Context(), func(ctx context.Context) {
		for _, c := range control {
			c(ctx)
		}
	})
	f.nothingIsLeft()
	return err
}

// nothingIsLeft looks for processes of the groups that were started.
func (f *fixture) nothingIsLeft() {
	f.t.Helper()
	assert.Empty(f.t, f.Work.Survivors(), "processes")
	for _, j := range f.Board.Jobs() {
		assert.True(f.t, j.State.Final(), "%s: %s", j.Name, j.State)
	}
	left, err := os.ReadDir(f.Work.Path("jobs"))
	assert.NoError(f.t, err)
	assert.Empty(f.t, left, "work directories")
}

// job returns what has become of a job.
func (f *fixture) job(name string) board.Job {
	f.t.Helper()
	for _, j := range f.Board.Jobs() {
		if j.Name == name {
			return j
		}
	}
	f.t.Fatalf("no job %q", name)
	return board.Job{}
}

// log returns a job's log.
func (f *fixture) log(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(f.job(name).Log)
	require.NoError(f.t, err)
	return string(data)
}

// is asserts the state of a job and, if it is not a success, its cause and a part
// of the explanation.
func (f *fixture) is(name string, s plan.State, cause plan.Cause, why string) {
	f.t.Helper()
	j := f.job(name)
	assert.Equal(f.t, s.String(), j.State.String(), "%s: %s", name, j.Why)
	assert.Equal(f.t, cause, j.Cause, "%s: %s", name, j.Why)
	assert.Contains(f.t, j.Why, why)
}

// A watcher counts jobs at work, and lets tests wait for lines.
type watcher struct {
	mu        sync.Mutex
	atWork    map[string]bool
	most      int
	wait      map[string][]func()
	began     []string
	seenLines []string
}

func (w *watcher) Changed(j board.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.atWork == nil {
		w.atWork = map[string]bool{}
	}
	if j.State == plan.Running && !w.atWork[j.Name] {
		w.began = append(w.began, j.Name)
	}
	w.atWork[j.Name] = j.State == plan.Running
	n := 0
	for _, busy := range w.atWork {
		if busy {
			n++
		}
	}
	w.most = max(w.most, n)
}

func (w *watcher) Line(job, source, line string) {
	w.mu.Lock()
	text := job + ": " + line
	calls := w.wait[text]
	delete(w.wait, text)
	w.seenLines = append(w.seenLines, text)
	w.mu.Unlock()
	for _, f := range calls {
		f()
	}
}

func (w *watcher) Notice(string) {}

// when calls f when a job says a line.
func (w *watcher) when(job, line string, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wait == nil {
		w.wait = map[string][]func(){}
	}
	text := job + ": " + line
	w.wait[text] = append(w.wait[text], f)
}
