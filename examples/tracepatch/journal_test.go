//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openJournal(t *testing.T, limit int64) (j *journal, added *int) {
	j, err := newJournal(limit)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.file.Close() })
	added = new(int)
	j.added = func(n int) { *added += n }
	return j, added
}

func TestJournalKeepsNoMoreThanItsLimit(t *testing.T) {
	j, added := openJournal(t, 10)
	for range 100 {
		n, err := io.WriteString(j, "12345678")
		require.NoError(t, err)
		assert.Equal(t, 8, n)
	}
	got, err := io.ReadAll(j.section(0, j.Size()))
	require.NoError(t, err)
	assert.Equal(t, "1234567812\n[the log has reached 10 bytes; the rest is left out]\n", string(got))
	assert.Equal(t, len(got), *added)
	size, sum := j.Sum()
	assert.Equal(t, int64(len(got)), size)
	assert.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256(got)), sum)
	assert.NoError(t, j.Err())
}

func TestNoteBeginsALine(t *testing.T) {
	j, _ := openJournal(t, 1000)
	j.notef("one")
	_, _ = io.WriteString(j, "open")
	j.notef("two")
	got, err := io.ReadAll(j.section(0, j.Size()))
	require.NoError(t, err)
	assert.Equal(t, "[tracepatch: one]\nopen\n[tracepatch: two]\n", string(got))
}

// A log that cannot be kept does not stop the job, and is not called complete.
func TestJournalThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(traceServer)
		err := quiet().uploads(t.Context(), s, func(j *job, _ *stop) error {
			_, err := io.WriteString(j.log, "first\n")
			assert.NoError(t, err)
			assert.NoError(t, j.log.file.Close())
			_, err = io.WriteString(j.log, strings.Repeat("more\n", 100))
			assert.NoError(t, err)
			return nil
		})
		require.ErrorAs(t, err, new(*uploadError))
		require.ErrorContains(t, err, "file already closed")
	})
}
