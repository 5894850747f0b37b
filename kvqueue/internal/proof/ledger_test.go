package proof_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A listener is a test that only writes down what is wrong.
type listener struct {
	testing.TB
	wrong []string
}

func (l *listener) Errorf(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}
func (l *listener) Logf(string, ...any) {}
func (l *listener) Helper()             {}
func (l *listener) Failed() bool        { return len(l.wrong) > 0 }

// A ledger is told what workers say, and compares it with what the store shows. A worker that was killed
// has said what it asks for before it asks, and perhaps not what came of it.
func TestALedgerBearsWhatAKilledWorkerDidNotSay(t *testing.T) {
	const stays, goes, never = "stays", "goes", "never comes"
	for _, c := range []struct {
		what  string
		words []proof.Word
		item  string
		wrong string // nothing: it is well
	}{
		{"killed before it knows that it was added, and it was", []proof.Word{proof.Adds, proof.Wants}, goes, ""},
		{"killed before it knows that it was added, and it was not", []proof.Word{proof.Adds}, never, ""},
		{"killed before it knows that it is gone", []proof.Word{proof.Adds, proof.Added, proof.Wants}, goes, ""},
		{"it is told of all", []proof.Word{proof.Adds, proof.Added, proof.Wants, proof.Acked}, goes, ""},
		{"two ask, and one is told", []proof.Word{proof.Adds, proof.Added, proof.Wants, proof.Wants, proof.Acked}, goes, ""},
		{"nobody asked for its end", []proof.Word{proof.Adds, proof.Added}, goes, "went, and nobody has asked for it"},
		{"nobody asked for it", []proof.Word{proof.Wants}, goes, "was added, and nobody has asked for it"},
		{"it is lost", []proof.Word{proof.Adds, proof.Added, proof.Wants}, never, "was added"},
		{"it was refused, and is there", []proof.Word{proof.Adds, proof.Refused, proof.Wants}, goes, "was refused"},
		{"it stays", []proof.Word{proof.Adds, proof.Added, proof.Wants}, stays, "is gone"},
		{"two are told", []proof.Word{proof.Adds, proof.Added, proof.Wants, proof.Wants, proof.Acked, proof.Acked}, goes, "was acknowledged"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listener{TB: t}
				ledger := proof.NewLedger()
				for _, w := range c.words {
					ledger.Note(w, "v")
				}
				ledger.Check(l, audited(t, "q", c.item), audited(t, "out", never))
				if c.wrong == "" {
					assert.Empty(t, l.wrong)
				} else {
					assert.Contains(t, strings.Join(l.wrong, "\n"), c.wrong)
				}
			})
		})
	}
}

// audited has an auditor see a queue in which one item comes, and perhaps goes.
func audited(t *testing.T, name, item string) *proof.Auditor {
	kv := memkv.New()
	t.Cleanup(kv.Close)
	a := proof.NewAuditor(name)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Follow(ctx, proof.Always(kv)) }()
	synctest.Wait()
	transactions := [][]kvqueue.Write{
		{named("l/" + session), {Key: key("d", 1), Value: []byte("v")}, put("q", 1)}, {del("q", 1), put("w", 1)}, {del("d", 1), del("w", 1)},
	}
	switch item {
	case "stays":
		transactions = transactions[:2]
	case "never comes":
		transactions = nil
	}
	for _, w := range transactions {
		_, err := kv.Commit(t.Context(), nil, w)
		require.NoError(t, err)
	}
	require.NoError(t, a.Settle(t.Context(), kv))
	stop()
	<-ended
	assert.Empty(t, a.Faults())
	return a
}
