package etcdkv

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestARangeOfNoKeyIsNotAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		from, to   []byte
		begin, end string
		ok         bool
	}{
		"a key":                                {[]byte("a"), nil, "a", "", true},
		"a range":                              {[]byte("a"), []byte("b"), "a", "b", true},
		"from the first key":                   {nil, []byte("b"), "\x00", "b", true},
		"an end that etcd takes for no end":    {[]byte("a"), []byte{0}, "a", "\x00", false},
		"an end that etcd takes for one key":   {[]byte("a"), []byte{}, "a", "", false},
		"a range that ends before it begins":   {[]byte("b"), []byte("a"), "b", "a", false},
		"a range that ends where it begins":    {[]byte("b"), []byte("b"), "b", "b", false},
		"the empty key, which etcd never has":  {nil, nil, "", "", false},
		"everything before the first real key": {nil, []byte{0}, "\x00", "\x00", false},
	} {
		t.Run(name, func(t *testing.T) {
			begin, end, ok := span(c.from, c.to)
			assert.Equal(t, c.ok, ok)
			if ok {
				assert.Equal(t, c.begin, begin)
				assert.Equal(t, c.end, end)
			}
		})
	}
}
