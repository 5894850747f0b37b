package locks_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/memstore"
	"github.com/ambit-go/ambit/locks/sqlitestore"
)

// The code of README.md stands here.

func payInvoice(ctx context.Context, db *sql.DB) error {
	store, err := sqlitestore.New(ctx, db)
	if err != nil {
		return err
	}
	defer store.Close()
	m, err := locks.New(store, locks.Tenant("acme"))
	if err != nil {
		return err
	}
	return m.With(ctx, "invoice/42", func(ctx context.Context) error {
		async.Go(ctx, notify) // is joined before the lock is given back
		return pay(ctx, locks.From(ctx).Token())
	})
}

func pay(ctx context.Context, token int64) error {
	hold := locks.From(ctx)
	for _, line := range lines {
		if err := hold.Err(); err != nil { // a look at the clock, before each write outside
			return err
		}
		if err := write(ctx, line, token); err != nil {
			return err
		}
	}
	return nil
}

const guarded = `UPDATE invoice SET paid = true, token = $1 WHERE id = 42 AND token <= $1`

var lines = []string{"one", "two"}

func write(context.Context, string, int64) error { return nil }
func notify(context.Context) error               { return nil }

func TestTheReadmeShowsCodeThatCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		if strings.HasPrefix(string(b[1]), "package main") {
			continue // it is run
		}
		for _, line := range strings.Split(string(b[1]), "\n") {
			require.Contains(t, string(source), strings.TrimSpace(line))
		}
	}
	require.Contains(t, string(readme), strings.TrimSpace(guarded))
}

// TestTheFirstProgramOfTheReadmeRuns as a program, in a directory where there is nothing.
func TestTheFirstProgramOfTheReadmeRuns(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	program := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindSubmatch(readme)
	require.NotNil(t, program)
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "first")
	require.NoError(t, os.WriteFile(source, program[1], 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for range 2 { // the second time there is a file
		run := exec.CommandContext(t.Context(), binary)
		run.Dir = dir
		out, err = run.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, `^nobody else has invoice/42; the token is \d{16}\n$`, string(out))
	}
}

func TestTheReadmesExampleDoesWhatItSays(t *testing.T) {
	db, err := sql.Open("sqlite", t.TempDir()+"/locks.db")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, payInvoice(t.Context(), db))

	m, err := locks.New(memstore.New())
	require.NoError(t, err)
	require.NoError(t, m.With(t.Context(), "k", func(ctx context.Context) error { return pay(ctx, locks.From(ctx).Token()) }))
}
