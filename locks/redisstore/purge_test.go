package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// TestAPurgeOfWhatIsHeldLooksAtEachRecordOnce: each is due again by the time of the next look.
func TestAPurgeOfWhatIsHeldLooksAtEachRecordOnce(t *testing.T) {
	const held = 400
	server := servers.Redis(t)
	client := connect(t, server)
	m, err := locks.New(store(t, server), locks.Retention(time.Microsecond), locks.Lease(time.Hour))
	require.NoError(t, err)
	for i := range held {
		_, err := m.Acquire(t.Context(), fmt.Sprint("k", i))
		require.NoError(t, err)
	}
	require.NoError(t, client.ConfigResetStat(t.Context()).Err())
	n, err := m.Purge(t.Context(), 1000)
	require.NoError(t, err)
	require.Zero(t, n)
	stats, err := client.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	var looks int
	_, err = fmt.Sscanf(stats["Commandstats"]["cmdstat_hexists"], "calls=%d,", &looks)
	require.NoError(t, err)
	require.LessOrEqual(t, looks, held)
}
