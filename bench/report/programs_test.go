package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// After a program that fails the others are measured, what it had come to is kept, and the page says that it has failed.
func TestAProgramThatFailsDoesNotTakeTheOthersWithIt(t *testing.T) {
	shell := func(script string) func(context.Context, config, []string) *exec.Cmd {
		return func(ctx context.Context, _ config, _ []string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "sh", "-c", script)
			cmd.Env = append(os.Environ(), "RECORD="+row(t, "X1"), "OTHER="+row(t, "Y1"))
			return cmd
		}
	}
	was := programs
	defer func() { programs = was }()
	programs = []program{
		{name: "fails", numbers: []string{"X1", "X2"}, command: shell(`echo "$RECORD"; echo why; exit 3`)},
		{name: "works", numbers: []string{"Y1"}, command: shell(`echo "$OTHER"`)},
	}
	var all results
	cfg := config{docs: t.TempDir(), keep: filepath.Join(t.TempDir(), "records")}
	err := all.measure(t.Context(), cfg)
	require.ErrorContains(t, err, "fails: exit status 3")
	require.Len(t, all.rows, 2)
	require.Len(t, all.ran, 2)
	require.Contains(t, all.ran[0].Missing, "it has failed")
	require.Empty(t, all.ran[1].Missing)

	var kept results
	require.NoError(t, kept.read(cfg.keep))
	require.Len(t, kept.rows, 2)
}

// Rows that are to be measured anew stay as they were where that fails.
func TestWhatWasKeptStaysWhereItCannotBeMeasuredAnew(t *testing.T) {
	was := programs
	defer func() { programs = was }()
	programs = []program{{name: "gone", numbers: []string{"X1"}, servers: []string{"no-such-server"}}}
	cfg := config{docs: t.TempDir(), keep: filepath.Join(t.TempDir(), "records"), only: regexp.MustCompile("^X1$")}
	require.NoError(t, os.WriteFile(cfg.keep, []byte(row(t, "X1")), 0o666))
	require.ErrorContains(t, report(t.Context(), cfg, cfg.keep), "gone: not measured: no-such-server is not installed")
	var kept results
	require.NoError(t, kept.read(cfg.keep))
	require.Len(t, kept.rows, 1)
	require.NoFileExists(t, filepath.Join(cfg.docs, "performance.md"))
}

// row is a row as a program tells it.
func row(t *testing.T, id string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), id)
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, measure.Write(f, measure.Record{Row: &measure.Row{ID: id, Ours: measure.Sample{1}}}))
	require.NoError(t, f.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
