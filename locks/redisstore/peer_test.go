package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks/lockstest"
)

// peer takes a lock with rueidislock: one key, all else as it is.
func peer(ctx context.Context, url, key string, lease time.Duration, body func(ctx context.Context)) error {
	address := strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0")
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
		KeyMajority:  1, KeyValidity: lease,
	})
	if err != nil {
		return err
	}
	defer locker.Close()
	held, release, err := locker.WithContext(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	body(held)
	return nil
}

// The check of the matrix has to see what it is there for. Another library of renown has
// two who believe that they have the lock when the network goes silent.
func TestTheMatrixSeesAnOverlapOfAPeer(t *testing.T) {
	faults := lockstest.Overlaps(t, target)
	require.NotEmpty(t, faults)
	t.Log(faults[0], "and", len(faults)-1, "more, the last:", faults[len(faults)-1])
}
