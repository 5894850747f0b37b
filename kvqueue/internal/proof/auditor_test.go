package proof_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

const session = "00000000000000aa"

// key is the key of an item with a hint.
func key(kind string, hint uint64) []byte {
	of := "kvq/q/" + kind + "/"
	if kind == "w" {
		of += session + "/"
	}
	return append(binary.BigEndian.AppendUint64([]byte(of), hint), make([]byte, 12)...)
}

func put(kind string, hint uint64) kvqueue.Write {
	return kvqueue.Write{Key: key(kind, hint), Value: []byte{0, 0, 1}}
}
func del(kind string, hint uint64) kvqueue.Write {
	return kvqueue.Write{Key: key(kind, hint), Delete: true}
}
func named(name string, value ...byte) kvqueue.Write {
	return kvqueue.Write{Key: []byte("kvq/q/" + name), Value: value}
}

// Keys of the group a.
var (
	marked   = named("m/a")
	unmarked = kvqueue.Write{Key: marked.Key, Delete: true}
	held     = named("g/a/")
	waits    = named("g/a/", []byte("waits")...)
	free     = kvqueue.Write{Key: held.Key, Delete: true}
)

func ready(hint uint64) kvqueue.Write {
	return kvqueue.Write{Key: append([]byte("kvq/q/g/a/"), key("q", hint)[len("kvq/q/q/"):]...), Value: []byte{0, 0, 1}}
}
func taken(hint uint64) kvqueue.Write { return kvqueue.Write{Key: ready(hint).Key, Delete: true} }
func claimed(hint uint64) kvqueue.Write {
	return kvqueue.Write{Key: key("w", hint), Value: []byte{0, 0, 1, 1, 'a'}}
}

// An auditor sees each fault in the transactions of a store, whether it follows them or
// finds them done.
func TestAnAuditorSeesWhatIsWrong(t *testing.T) {
	lives := named("l/" + session)
	floor := binary.BigEndian.AppendUint64(nil, 9)
	for name, c := range map[string]struct {
		says   string // nothing: it is well
		passes bool   // it is not to be seen when it is over
		of     [][]kvqueue.Write
	}{
		"a life":                   {"", true, [][]kvqueue.Write{{lives, put("d", 1), put("q", 1)}, {del("q", 1), put("w", 1)}, {del("d", 1), del("w", 1)}}},
		"no payload":               {"has no payload", false, [][]kvqueue.Write{{put("q", 1)}}},
		"no state":                 {"no state", false, [][]kvqueue.Write{{put("d", 1)}}},
		"no state for a while":     {"no state", true, [][]kvqueue.Write{{put("d", 1)}, {put("q", 1)}}},
		"two places":               {"C1", false, [][]kvqueue.Write{{put("d", 1), put("q", 1), put("x", 1)}}},
		"below the floor":          {"C7", false, [][]kvqueue.Write{{named("h", floor...)}, {put("d", 1), put("q", 1)}}},
		"the floor passes an item": {"C7", false, [][]kvqueue.Write{{put("d", 1), put("q", 1)}, {named("h", floor...)}}},
		"claimed by nobody":        {"C5", false, [][]kvqueue.Write{{put("d", 1), put("w", 1)}}},
		"a request of nobody":      {"C5", false, [][]kvqueue.Write{{named("r/1234567890123456", 0, 0, 0, 0, 0, 0, 0, 1, 1)}}},
		"there again":              {"C2", true, [][]kvqueue.Write{{put("d", 1), put("q", 1)}, {del("d", 1), del("q", 1)}, {put("d", 1), put("q", 1)}}},
		"out of order": {"C3", true, [][]kvqueue.Write{{lives, put("d", 1), put("q", 1)}, {put("d", 99), put("q", 99)},
			{del("q", 99), put("w", 99)}, {del("q", 1), put("w", 1)}}},
		"the life of a group":                    {"", true, [][]kvqueue.Write{{lives, put("d", 1), ready(1), marked}, {taken(1), claimed(1), held}, {del("d", 1), del("w", 1), free}}},
		"two of a group":                         {"G1", false, [][]kvqueue.Write{{lives, put("d", 1), claimed(1), held}, {put("d", 2), claimed(2)}}},
		"a group is not held":                    {"G1", false, [][]kvqueue.Write{{lives, put("d", 1), claimed(1)}}},
		"a group is held":                        {"G1", false, [][]kvqueue.Write{{held}}},
		"not the first":                          {"G2", true, [][]kvqueue.Write{{lives, put("d", 1), put("d", 2), ready(1), ready(2), marked}, {taken(2), claimed(2), held}}},
		"no marker":                              {"G3", false, [][]kvqueue.Write{{put("d", 1), ready(1)}}},
		"a group waits":                          {"", true, [][]kvqueue.Write{{lives, put("d", 1), put("d", 2), ready(1), ready(2), marked}, {taken(1), claimed(1), held}, {waits, unmarked}, {del("w", 1), ready(1), free, marked}, {taken(1), claimed(1), held}}},
		"a group has waited, and has no marker":  {"G3", false, [][]kvqueue.Write{{lives, put("d", 1), ready(1), marked}, {taken(1), claimed(1), held}, {waits, unmarked}, {del("w", 1), ready(1), free}}},
		"two places, of which one is in a group": {"C1", false, [][]kvqueue.Write{{put("d", 1), put("q", 1), ready(1), marked}}},
	} {
		for _, follows := range []bool{true, false} {
			if !follows && c.passes {
				continue
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := memkv.New()
					defer kv.Close()
					a := proof.NewAuditor("q")
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan struct{})
					follow := func() {
						go func() { defer close(ended); a.Follow(ctx, proof.Always(kv)) }()
						synctest.Wait()
					}
					if follows {
						follow()
					}
					for _, w := range c.of {
						_, err := kv.Commit(t.Context(), nil, w)
						require.NoError(t, err)
					}
					if !follows {
						follow()
					}
					require.NoError(t, a.Settle(t.Context(), kv))
					require.NoError(t, a.Compare(t.Context(), kv))
					a.Order()
					stop()
					<-ended
					if c.says == "" {
						assert.Empty(t, a.Faults())
					} else {
						assert.Contains(t, strings.Join(a.Faults(), "\n"), c.says)
					}
				})
			})
		}
	}
}
