package lockstest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// LostAnswers has the answers be lost to steps that the server has done, each in place of
// words, which may be those of a server that ends the connection. A call that a client repeats then
// finds its own work done, and that is no failure.
func LostAnswers(t *testing.T, target Target, words []byte) {
	server, _ := target.Start(t)
	proxy := NewProxy(t, server.Network, server.Address)
	store, err := locks.Open(t.Context(), target.Via(server, proxy.Address))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	m, err := locks.New(store)
	require.NoError(t, err)
	for key, option := range map[string]locks.LockOption{
		"mutex": locks.Fair(true), "deleted": locks.DeleteOnRelease(), "pool": locks.Permit(2), "data": locks.Data("d"),
	} {
		for i := range 8 { // at first connections are made, and statements prepared
			assert.NoError(t, m.With(t.Context(), key, func(context.Context) error {
				proxy.Replace(i%4, words)
				return nil
			}, option), "%s: all was done", key)
			proxy.Heal()
		}
	}
	for i := range 8 {
		key := fmt.Sprint("deleted by hand ", i)
		_, err := m.CreateMutex(t.Context(), key)
		require.NoError(t, err)
		proxy.Replace(i%4, words)
		err = m.Delete(t.Context(), key, "")
		assert.NotErrorIs(t, err, locks.ErrNotFound, "it was there")
		proxy.Heal()
	}
	assert.GreaterOrEqual(t, proxy.Lost(), 10)
}
