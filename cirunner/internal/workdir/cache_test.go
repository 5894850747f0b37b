//go:build unix

package workdir

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever waits for a cache that another run has is not held longer than its context lasts.
func TestAnAbortDoesNotWaitForACache(t *testing.T) {
	project := t.TempDir()
	r, _, err := Open(project)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close(false) })
	require.NoError(t, os.MkdirAll(r.JobDir("j"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.JobDir("j"), "f"), []byte("x"), 0o644))
	store := Store{Dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		files, err := store.Keep(t.Context(), r, "k", "j", []string{"f"})
		require.NoError(t, err)
		require.Equal(t, 1, files)
		other, err := tryLock(filepath.Join(store.Dir, ".locks", "k"))
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = store.Keep(ctx, r, "k", "j", []string{"f"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, store.Take(ctx, r, "k", "j"), context.DeadlineExceeded)

		time.AfterFunc(time.Minute, func() { _ = other.Close() })
		require.NoError(t, store.Take(t.Context(), r, "k", "j"), "it has waited")
	})
}

// The store's own files are in the way of no key.
func TestKeysThatLookLikeFilesOfTheStore(t *testing.T) {
	r, _ := open(t, project(t, nil))
	store := Store{Dir: t.TempDir()}
	keys := []string{"yarn", "yarn.lock", "yarn.new"}
	for range 2 {
		for _, key := range keys {
			require.NoError(t, os.MkdirAll(r.JobDir(key), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(r.JobDir(key), "f"), []byte(key), 0o644))
			_, err := store.Keep(t.Context(), r, key, key, []string{"f"})
			require.NoError(t, err)
		}
	}
	for _, key := range keys {
		require.True(t, store.Has(key))
		require.NoError(t, os.MkdirAll(r.JobDir("reader"), 0o755))
		require.NoError(t, store.Take(t.Context(), r, key, "reader"))
		require.Equal(t, key, read(t, r.JobDir("reader"), "f"))
	}
	require.NoError(t, r.Close(false))
}
