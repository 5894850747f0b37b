package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// newStore returns the URL of a store that knows a queue.
func newStore(t *testing.T) string {
	t.Helper()
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	status, _, errs := taskq(t, store, "enqueue", "-delay", "1h", "-keep", "1h", "-id", "first", "x")
	require.Zero(t, status, errs)
	return store
}

func TestEveryCommandTellsItsFlagsAndExitStatus(t *testing.T) {
	for name, c := range commands {
		status, out, errs := taskq(t, "sqlite:nowhere", name, "-h")
		assert.Zero(t, status, name)
		assert.Empty(t, errs, name)
		for _, want := range []string{"Usage: taskq " + name, c.what, "-store URL", "Exit status: 0"} {
			assert.Contains(t, out, want, name)
		}
	}
	_, out, _ := taskq(t, "", "-h")
	for _, name := range []string{"enqueue", "work", "list", "show", "stats", "retry", "cancel", "delete", "pause", "purge", "import", "serve", "demo"} {
		assert.Contains(t, out, "  "+name+" ")
	}
	assert.Contains(t, out, "128+n")
}

func TestWhatOnlyLooksMakesNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks")
	for name, c := range commands {
		if makes[name] || alone[name] {
			continue
		}
		args := []string{name}
		if c.args == "id ..." {
			args = append(args, "x")
		}
		status, _, errs := taskq(t, "sqlite:"+file, args...)
		assert.Equal(t, 1, status, name)
		assert.Contains(t, errs, "there is no file "+file, name)
		_, err := os.Stat(file)
		assert.ErrorIs(t, err, os.ErrNotExist, name)
	}
}

func TestFlagsStandBeforeArgumentsAndBehindThem(t *testing.T) {
	store := newStore(t)
	for _, args := range []string{"show -json first", "show first -json", "show -- first"} {
		status, out, errs := taskq(t, store, strings.Fields(args)...)
		assert.Zero(t, status, errs)
		assert.Equal(t, strings.Contains(args, "json"), json.Valid([]byte(out)), args)
	}
	status, _, errs := taskq(t, store, "enqueue", "--", "-5")
	assert.Zero(t, status, errs)
	status, _, errs = taskq(t, store, "show", "--", "-json")
	assert.Equal(t, 3, status)
	assert.Contains(t, errs, "-json: there is no such task in queue default")
}

func TestPauseNamesItsQueues(t *testing.T) {
	store := newStore(t)
	status, _, errs := taskq(t, store, "pause", "mail", "default")
	assert.Zero(t, status)
	assert.Contains(t, errs, "there is no queue mail yet; there are: default")
	_, out, _ := taskq(t, store, "stats")
	assert.Equal(t, 2, strings.Count(out, "paused"))
	status, out, errs = taskq(t, store, "resume", "-queue", "mail", "-json")
	assert.Zero(t, status, errs)
	assert.JSONEq(t, `{"queue": "mail", "paused": false}`, out)
	_, out, _ = taskq(t, store, "stats", "mail")
	assert.NotContains(t, out, "paused")
	assert.NotContains(t, out, "default")
}

func TestAQueueThatThereIsNotIsTold(t *testing.T) {
	store := newStore(t)
	for _, args := range []string{"list -queue mial", "stats mial", "stats -queue mial", "purge done -queue mial"} {
		status, _, errs := taskq(t, store, strings.Fields(args)...)
		assert.Zero(t, status, args)
		assert.Contains(t, errs, "there is no queue mial yet; there are: default", args)
	}
}

func TestAnActThatIsRefusedSaysWhy(t *testing.T) {
	store := newStore(t)
	for args, want := range map[string]string{
		"retry first":           "first: it is scheduled: only dead letters",
		"cancel first nobody":   "nobody: there is no such task in queue default",
		"promote first":         "first: it is cancelled: only tasks that wait for their time",
		"cancel first":          "first: it is cancelled: only tasks that wait or run",
		"delete x -queue other": "no such task in queue other",
	} {
		_, _, _ = taskq(t, store, "cancel", "first")
		if strings.HasPrefix(args, "retry") {
			_, _, _ = taskq(t, store, "retry", "first")
			_, _, _ = taskq(t, store, "delete", "first")
			_, _, _ = taskq(t, store, "enqueue", "-delay", "1h", "-keep", "1h", "-id", "first", "x")
		}
		status, _, errs := taskq(t, store, strings.Fields(args)...)
		assert.Equal(t, 3, status, args)
		assert.Contains(t, errs, want, args)
	}
}

func TestAPayloadThatIsTooLargeIsRefusedUnread(t *testing.T) {
	endless := io.LimitReader(zeros{}, 1<<40)
	e := &env{args: nil, stdin: endless, stdout: io.Discard, stderr: io.Discard}
	s := memstore.New()
	defer func() { assert.NoError(t, s.Close()) }()
	err := runOn(e, s, "enqueue", "-")
	assert.ErrorContains(t, err, "more than 1048576 bytes")
	left, err := io.Copy(io.Discard, io.LimitReader(endless, 1))
	require.NoError(t, err)
	assert.EqualValues(t, 1, left)
	require.NoError(t, runOn(&env{stdin: io.LimitReader(zeros{}, taskqueue.MaxPayload), stdout: io.Discard}, s, "enqueue", "-"))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// runOn runs a command on a store that is open.
func runOn(e *env, s taskqueue.Store, name string, args ...string) error {
	f := newFlags(name, e)
	act := commands[name].set(f.FlagSet)
	var err error
	if e.args, err = parse(f.FlagSet, args); err != nil {
		return err
	}
	q, err := taskqueue.New(s)
	if err != nil {
		return err
	}
	e.store, e.queue = s, q
	return act(context.Background(), e)
}

// A store whose answers to Enqueue are lost.
type unanswered struct{ taskqueue.Store }

func (s unanswered) Enqueue(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	_, err := s.Store.Enqueue(ctx, queue, tasks)
	return nil, errors.Join(err, taskqueue.ErrUnknown)
}

func TestAnEnqueueWhoseAnswerIsLostSaysHowToRepeatIt(t *testing.T) {
	s := memstore.New()
	defer func() { assert.NoError(t, s.Close()) }()
	err := runOn(&env{}, unanswered{s}, "enqueue", "x")
	require.ErrorIs(t, err, taskqueue.ErrUnknown)
	found, listErr := s.List(context.Background(), "default", taskqueue.ListRequest{State: taskqueue.StateReady})
	require.NoError(t, listErr)
	require.Len(t, found.Tasks, 1)
	assert.Contains(t, err.Error(), "-id "+found.Tasks[0].ID)
}

func TestAListIsWrittenPageByPage(t *testing.T) {
	const tasks = 2500
	s := &paged{Store: memstore.New()}
	defer func() { assert.NoError(t, s.Close()) }()
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	all := make([]taskqueue.Task, tasks)
	for i := range all {
		all[i] = taskqueue.Task{Type: "t"}
	}
	for part := range 3 {
		_, err := q.EnqueueAll(context.Background(), all[part*1000:min((part+1)*1000, tasks)])
		require.NoError(t, err)
	}
	for _, flags := range [][]string{{"-n", "0"}, {"-n", "0", "-json"}} {
		s.pages = 0
		var out pagesAtWrite
		out.s = s
		require.NoError(t, runOn(&env{stdout: &out, stderr: io.Discard}, s, "list", flags...))
		assert.Equal(t, tasks, bytes.Count(out.b.Bytes(), []byte("\n"))-1+len(flags)-2)
		assert.Greater(t, s.pages, 20)
		assert.LessOrEqual(t, out.first, 3, "it writes before it has read all")
	}
	var errs bytes.Buffer
	var out bytes.Buffer
	require.NoError(t, runOn(&env{stdout: &out, stderr: &errs}, s, "list", "-n", "3"))
	assert.Equal(t, 4, strings.Count(out.String(), "\n"))
	assert.Contains(t, errs.String(), "there are more: -n 0 lists all")
}

// A paged store counts the pages it was asked for.
type paged struct {
	taskqueue.Store
	pages int
}

func (p *paged) List(ctx context.Context, queue string, r taskqueue.ListRequest) (taskqueue.Page, error) {
	p.pages++
	return p.Store.List(ctx, queue, r)
}

// pagesAtWrite notes how many pages had been read at the first write.
type pagesAtWrite struct {
	s     *paged
	b     bytes.Buffer
	first int
}

func (p *pagesAtWrite) Write(b []byte) (int, error) {
	if p.first == 0 {
		p.first = p.s.pages
	}
	return p.b.Write(b)
}

func TestListsAreFitForATerminal(t *testing.T) {
	s := memstore.New()
	defer func() { assert.NoError(t, s.Close()) }()
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	ids := []string{"世界世界", "a\x1b[2J", "👩‍💻", "e\u0301\u202e", "plain"}
	for _, id := range ids {
		_, err := q.Enqueue(context.Background(), taskqueue.Task{ID: id, Type: "t\n" + id})
		require.NoError(t, err)
	}
	require.NoError(t, q.Work(context.Background(), taskqueue.Handlers{"t\nplain": func(_ context.Context, c *taskqueue.Claim) error {
		return taskqueue.Dead(fmt.Errorf("no\x1b]0;%s\a\nmore", c.ID))
	}}, taskqueue.WorkUntilEmpty()))
	var out bytes.Buffer
	require.NoError(t, runOn(&env{stdout: &out, stderr: io.Discard}, s, "list"))
	require.NoError(t, runOn(&env{stdout: &out, stderr: io.Discard}, s, "show", ids...))
	require.NoError(t, runOn(&env{stdout: &out, stderr: io.Discard}, s, "stats"))
	text := out.String()
	for _, bad := range []string{"\x1b", "\a", "\u202e"} {
		assert.NotContains(t, text, bad)
	}
	assert.Contains(t, text, `no\x1b]0;plain\x07`)
	column := -1
	for line := range strings.Lines(text) {
		if strings.Contains(line, "default") || line == "\n" || strings.HasPrefix(line, "id ") {
			break
		}
		at := strings.Index(line, "STATE")
		for _, state := range []string{"scheduled", "ready", "dead", "retrying"} {
			at = max(at, strings.Index(line, "  "+state)+2)
		}
		require.Positive(t, at, line)
		width := displaywidth.String(line[:at])
		if column < 0 {
			column = width
		}
		assert.Equal(t, column, width, "aligned: %q", line)
	}
	assert.Positive(t, column)
}
