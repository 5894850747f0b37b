package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A folder whose name is no UTF-8 cannot be looked into, whoever one is. That is
// told once, not at each look, and the work is not called done.
func TestAFolderThatCannotBeLookedIntoIsToldOnceAndCounts(t *testing.T) {
	cfg := configFor(t)
	if err := os.Mkdir(filepath.Join(cfg.folder, "bad\xff"), 0o777); err != nil {
		t.Skip("this file system takes no such name")
	}
	var out bytes.Buffer
	std := cli.Streams{Out: &out, Err: &out}
	cfg.once = true
	err := work(t.Context(), cfg, std)
	assert.EqualError(t, err, "1 folder could not be looked into")
	assert.Equal(t, statusGivenUp, cli.Status(err))

	out.Reset()
	s, err := open(cfg, std)
	require.NoError(t, err)
	defer s.close()
	for range 3 {
		require.NoError(t, s.look(t.Context(), nil))
	}
	assert.Equal(t, 1, strings.Count(out.String(), "cannot look into"), out.String())
	require.NoError(t, os.Remove(filepath.Join(cfg.folder, "bad\xff")))
	require.NoError(t, s.look(t.Context(), nil))
	s.unseen.Range(func(name, _ any) bool { t.Error("still there:", name); return true })
}
