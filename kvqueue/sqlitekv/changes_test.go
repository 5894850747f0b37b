package sqlitekv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChangesAreReadAsTheyWereWritten(t *testing.T) {
	long := strings.Repeat("x", mostLogged)
	var b []byte
	b = appendChange(b, []byte("a"), []byte("1"), false)
	b = appendChange(b, []byte("b"), nil, false)
	b = appendChange(b, []byte(long), nil, true)
	b = appendChange(b, nil, []byte(long), false)
	b = appendChange(b, []byte("c"), []byte(long+"x"), false)
	var got []string
	require.NoError(t, changesOf(b, func(k kind, key, value []byte) { got = append(got, fmt.Sprintf("%d %s=%s", k, key, value)) }))
	assert.Equal(t, []string{"0 a=1", "0 b=", "2 " + long + "=", "0 =" + long, "1 c="}, got)
	for n := range b {
		whole := 0
		err := changesOf(b[:n], func(kind, []byte, []byte) { whole++ })
		assert.Less(t, whole, 5)
		if err != nil {
			assert.ErrorContains(t, err, "did not write")
		}
	}
}

func FuzzChangesOf(f *testing.F) {
	f.Add(appendChange(nil, []byte("a"), []byte("1"), false))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(_ *testing.T, b []byte) { _ = changesOf(b, func(kind, []byte, []byte) {}) })
}
