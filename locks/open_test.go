package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/memstore"
)

var (
	registered = memstore.New()
	errDown    = errors.New("it is down")
)

func init() {
	locks.Register("open-test", func(_ context.Context, url string) (locks.Store, error) {
		if url == "open-test:up" {
			return registered, nil
		}
		return nil, errDown
	})
}

func TestOpenFindsTheStoreOfAScheme(t *testing.T) {
	got, err := locks.Open(t.Context(), "open-test:up")
	require.NoError(t, err)
	assert.Same(t, registered, got)
	_, err = locks.Open(t.Context(), "open-test://user:secret@host")
	require.ErrorIs(t, err, errDown)
	assert.NotContains(t, err.Error(), "secret")
	for url, says := range map[string]string{
		"secret":       "the URL has no scheme",
		"other:secret": "the scheme is of none of the stores that this program has: mem, open-test",
	} {
		_, err := locks.Open(t.Context(), url)
		require.ErrorAs(t, err, new(*locks.ValidationError))
		assert.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestRegisterPanicsOnWhatCannotBe(t *testing.T) {
	assert.PanicsWithValue(t, "locks: Register of open-test-nil with nil", func() { locks.Register("open-test-nil", nil) })
	assert.PanicsWithValue(t, "locks: Register of mem, which is taken", func() { locks.Register("mem", locks.Open) })
}
