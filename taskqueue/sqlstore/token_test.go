//go:build unix

package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sequence that is ahead of the clock is not set: claims that draw from it meanwhile would have
// tokens that are given again. One that is behind jumps over what they can draw.
func TestToOpenAStoreGivesNoTokenAgain(t *testing.T) {
	all, pool, _ := pgStores(t, 1)
	draw := func() int64 { return number(t, pool, "SELECT nextval('tq_token')") }
	_, err := pool.Exec(t.Context(), "SELECT setval('tq_token', $1)", time.Now().Add(time.Hour).UnixMicro())
	require.NoError(t, err)
	last := draw()
	require.NoError(t, all[0].raiseToken(t.Context()))
	assert.Equal(t, last+1000, draw(), "it is ahead, and stays as it is")
	now := number(t, pool, foreignClockText)
	_, err = pool.Exec(t.Context(), "SELECT setval('tq_token', 1)")
	require.NoError(t, err)
	require.NoError(t, all[0].raiseToken(t.Context()))
	assert.Greater(t, draw(), now+9_000_000)
}

// Who uses the tables has the rights that the documentation of the package names.
func TestTheRightsThatTheDocumentationNamesSuffice(t *testing.T) {
	url := emptyDatabase(t)
	owner := poolOf(t, url)
	s, err := New(t.Context(), owner)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	role := "worker_of_" + url[strings.LastIndex(url, "/")+1:strings.Index(url, "?")]
	for _, text := range []string{
		"CREATE ROLE " + role + " LOGIN",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + role,
		"GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO " + role,
		"SELECT setval('tq_token', 1)",
	} {
		_, err = owner.Exec(t.Context(), text)
		require.NoError(t, err)
	}
	u, err := New(t.Context(), poolOf(t, strings.Replace(url, "postgres@", role+"@", 1)))
	require.NoError(t, err)
	defer func() { require.NoError(t, u.Close()) }()
	for i := range 3 {
		add(t, u, newTask(fmt.Sprint(i)))
	}
	got, err := claimAs(u, "w", "1/1", 3, time.Minute)
	require.NoError(t, err)
	require.Len(t, got.Tasks, 3)
	sound(t, u)
}
