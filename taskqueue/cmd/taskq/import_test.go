package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// oldFileOf returns the path of a copy of a file that filestore has written: in testdata it is
// as the last version with that store has left it.
func oldFileOf(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/filestore.gz")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "old")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestImportEnqueuesWhatHasNotEndedOnce(t *testing.T) {
	old, path := oldFileOf(t), filepath.Join(t.TempDir(), "tasks")
	url := "sqlite:" + path
	status, out, errs := taskq(t, url, "import", old)
	require.Zero(t, status, errs)
	assert.Equal(t, "5 tasks imported\n1 done were left in "+old+"\n1 dead were left in "+old+"\n1 cancelled were left in "+old+"\n", out)

	ctx := context.Background()
	store, err := taskqueue.Open(ctx, url)
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	q, err := taskqueue.New(store)
	require.NoError(t, err)
	get := func(q *taskqueue.Queue, id string) taskqueue.Info {
		i, err := q.Get(ctx, id)
		require.NoError(t, err, id)
		return i
	}
	waits := get(q, "waits")
	assert.Equal(t, time.Date(2150, 1, 2, 3, 4, 5, 6000, time.UTC), waits.DueAt)
	assert.Equal(t, taskqueue.StateScheduled, waits.State)
	assert.Equal(t, "ada", waits.UniqueKey)
	assert.Equal(t, `{"To": "ada"}`, string(waits.Payload))
	assert.Equal(t, time.Hour, waits.Retention)
	runs := get(q, "runs")
	assert.Equal(t, taskqueue.StateReady, runs.State)
	assert.Equal(t, map[string]string{"h": "1"}, runs.Headers)
	assert.EqualValues(t, 7, runs.Priority)
	assert.Equal(t, time.Minute, runs.Timeout)
	fails := get(q, "fails")
	assert.Equal(t, 9, fails.MaxFailures)
	assert.Greater(t, time.Until(fails.DueAt), 40*365*24*time.Hour, "it is retried when it was to be")
	ready := get(q, "is ready")
	assert.Equal(t, 5, ready.MaxCrashes)
	assert.Equal(t, 2150, ready.ExpiresAt.Year())
	assert.Equal(t, taskqueue.StateReady, get(q.In("paused"), "elsewhere").State)
	for name, want := range map[string]taskqueue.Settings{"default": {Concurrency: 3, Rate: 5, Burst: 2}, "paused": {Paused: true}} {
		stats, err := q.In(name).Stats(ctx)
		require.NoError(t, err)
		assert.Equal(t, want, stats.Settings, name)
	}

	status, out, errs = taskq(t, url, "import", "-json", "-dead", old)
	require.Zero(t, status, errs)
	var r importReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, importReport{Imported: 1, Exist: 5, Left: map[taskqueue.State]int{taskqueue.StateDone: 1, taskqueue.StateCancelled: 1}}, r)
	assert.Equal(t, taskqueue.StateReady, get(q, "dies").State)
}

func TestImportOfWhatIsNoSuchFileSaysSo(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	whole, err := os.ReadFile(oldFileOf(t))
	require.NoError(t, err)
	noise := append([]byte(nil), whole...)
	for i := 2 * 4096; i < len(noise); i++ { // behind the two pages that bbolt checks itself
		noise[i] = 0xa5
	}
	path := filepath.Join(t.TempDir(), "old")
	says := func(what string) {
		t.Helper()
		status, _, errs := taskq(t, url, "import", path)
		assert.NotZero(t, status)
		assert.Contains(t, errs, what)
	}
	says("no such file")
	for _, c := range []struct {
		content []byte
		says    string
	}{
		{nil, "there is nothing in " + path}, {[]byte("some text that somebody has written"), "invalid database"},
		{whole[:len(whole)/2], "is missing"}, {noise, "is damaged"},
	} {
		require.NoError(t, os.WriteFile(path, c.content, 0o600))
		says(c.says)
	}
}
