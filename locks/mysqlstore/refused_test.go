package mysqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// TestWhatTheServerWillNeverDoIsInvalid: to ask again does not help.
func TestWhatTheServerWillNeverDoIsInvalid(t *testing.T) {
	url := servers.Shared(t, servers.MariaDB).URL
	for _, wrong := range []string{
		strings.Replace(url, servers.Password, "another", 1), strings.Replace(url, "/locks", "/mysql", 1), strings.Replace(url, "/locks", "/nosuch", 1),
	} {
		_, err := locks.Open(t.Context(), wrong)
		require.ErrorIs(t, err, locks.ErrValidation)
		require.NotErrorIs(t, err, locks.ErrUnavailable)
		require.NotContains(t, err.Error(), servers.Password)
	}
}

// TestIdleRecordsGoBesideOneThatSomebodyHasLocked: at SERIALIZABLE a SELECT in a transaction
// waits for rows that are locked.
func TestIdleRecordsGoBesideOneThatSomebodyHasLocked(t *testing.T) {
	url := database(t)
	s := made(t, pool(t, url, func(c *mysql.Config) { c.Params["tx_isolation"] = "'SERIALIZABLE'" }))
	idle := func(key string) {
		q := request(key)
		q.Retention = time.Microsecond
		require.True(t, take(t, s, key, q)[0].Granted)
		released, err := s.Release(t.Context(), name(key), locks.Ref{ID: q.ID}, nil)
		require.NoError(t, err)
		require.True(t, released)
	}
	keys := sameBucket("k", 200)
	idle(keys[0])
	tx, err := plainPool(t, url).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var one int
	require.NoError(t, tx.QueryRow("SELECT 1 FROM lk_resource WHERE tenant = 't' AND `key` = ? FOR UPDATE", []byte(keys[0])).Scan(&one))
	for i := 1; ; i++ { // until the second has gone, while the first is locked
		require.Less(t, i, len(keys))
		idle(keys[i])
		_, err := s.Get(t.Context(), name(keys[1]))
		if errors.Is(err, locks.ErrNotFound) {
			break
		}
		require.NoError(t, err)
		time.Sleep(time.Duration(min(i, 20)) * time.Millisecond)
	}
	_, err = s.Get(t.Context(), name(keys[0]))
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
}

// sameBucket returns keys of one bucket.
func sameBucket(prefix string, n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint(prefix, i)
		if len(keys) == 0 || book.Bucket(name(key)) == book.Bucket(name(keys[0])) {
			keys = append(keys, key)
		}
	}
	return keys
}
