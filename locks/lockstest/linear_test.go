package lockstest

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// The model sees each of the faults that it is there for.
func TestTheModelOfASemaphoreSeesFaults(t *testing.T) {
	at := func(call, end int64, in op, out opAnswer) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: end, Input: in, Output: out}
	}
	first := at(1, 2, op{true, "a"}, opAnswer{true, 10, 0})
	for name, test := range map[string]struct {
		history []porcupine.Operation
		legal   bool
	}{
		"in order":                      {[]porcupine.Operation{first, at(3, 4, op{false, "a"}, opAnswer{ok: true}), at(5, 6, op{true, "b"}, opAnswer{true, 11, 0})}, true},
		"one too many":                  {[]porcupine.Operation{first, at(3, 4, op{true, "b"}, opAnswer{true, 11, 1})}, false},
		"refused beside a release":      {[]porcupine.Operation{first, at(3, 6, op{false, "a"}, opAnswer{ok: true}), at(4, 5, op{true, "b"}, opAnswer{})}, true},
		"refused though it is free":     {[]porcupine.Operation{first, at(3, 4, op{false, "a"}, opAnswer{ok: true}), at(5, 6, op{true, "b"}, opAnswer{})}, false},
		"a fence that does not grow":    {[]porcupine.Operation{first, at(3, 4, op{false, "a"}, opAnswer{ok: true}), at(5, 6, op{true, "b"}, opAnswer{true, 10, 0})}, false},
		"a slot that is not the first":  {[]porcupine.Operation{at(1, 2, op{true, "a"}, opAnswer{true, 10, 1})}, false},
		"a release that changed things": {[]porcupine.Operation{first, at(3, 4, op{false, "x"}, opAnswer{ok: true})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.legal, porcupine.CheckOperations(semaphore(1), test.history))
		})
	}
}
