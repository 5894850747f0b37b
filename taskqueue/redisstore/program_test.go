package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestRandomPrograms(t *testing.T) {
	client := server(t)
	run := func(text []byte) error {
		require.NoError(t, client.FlushAll(context.Background()).Err())
		s, err := redisstore.New(context.Background(), client)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		return taskqueuetest.Program(s, text, 6*time.Millisecond, false)
	}
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+20; seed++ {
		text := taskqueuetest.RandomText(seed, 600)
		if err := run(text); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
