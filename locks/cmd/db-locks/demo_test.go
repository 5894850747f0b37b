//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDemonstrationIsTrue(t *testing.T) {
	const n, rounds = 6, 20
	s := newSession(t)
	cmd, out := s.process("-j", "true", "demo", "--processes", strconv.Itoa(n), "--rounds", strconv.Itoa(rounds))
	require.Zero(t, ends(cmd), out)
	text := out.String()
	var r demoReport
	require.NoError(t, json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &r), text)
	require.Empty(t, r.Faults)
	require.Equal(t, r.Increments, r.Counter)
	require.Equal(t, n, r.Processes)
	require.GreaterOrEqual(t, r.Increments, (n-1)*rounds, "only the killed process does less")
	require.Positive(t, r.LostLeases, "the process that was stopped has lost its lease")
	require.Contains(t, text, "is killed")
}

func TestTheReportSeesFaults(t *testing.T) {
	for name, test := range map[string]struct {
		notes  []note
		faults int
	}{
		"in order":             {[]note{{1, "has", 5, 0}, {1, "wrote", 5, 1}, {2, "has", 6, 0}, {2, "wrote", 6, 2}}, 0},
		"an old token writes":  {[]note{{1, "has", 5, 0}, {2, "has", 6, 0}, {1, "wrote", 5, 1}}, 1},
		"a token goes back":    {[]note{{1, "has", 6, 0}, {2, "has", 5, 0}}, 1},
		"an increment is lost": {[]note{{1, "has", 5, 0}, {1, "wrote", 5, 1}, {2, "has", 6, 0}, {2, "wrote", 6, 1}}, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Len(t, audit(test.notes).Faults, test.faults) })
	}
}

func TestTheResourceRefusesAnOldToken(t *testing.T) {
	path := t.TempDir() + "/counter"
	require.NoError(t, os.WriteFile(path, []byte("0 0"), 0o600))
	wrote := 0
	require.NoError(t, writeCounter(path, 10, 1, func() { wrote++ }))
	require.ErrorIs(t, writeCounter(path, 9, 2, func() { wrote++ }), errRefused)
	require.NoError(t, writeCounter(path, 10, 2, func() { wrote++ }))
	value, err := readCounter(path)
	require.NoError(t, err)
	require.Equal(t, 2, value)
	require.Equal(t, 2, wrote)
}

func TestBenchAndDoctorMeasureAndLeaveNothingBehind(t *testing.T) {
	s := newSession(t)
	out, status, err := s.run("-j true doctor")
	require.NoError(t, err)
	require.Zero(t, status)
	require.NotContains(t, out, `"ok":false`)
	out, status, err = s.run("-j true bench")
	require.NoError(t, err)
	require.Zero(t, status)
	require.Equal(t, 3, strings.Count(out, "p99_us"))
	out, _, err = s.run("list")
	require.NoError(t, err)
	require.Contains(t, out, "no locks")
}
