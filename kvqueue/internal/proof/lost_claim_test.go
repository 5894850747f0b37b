package proof_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue/internal/proof"
)

// A process is killed while its claim is on its way. Whether that was done nobody knows: the item may come
// to another as at first, or as one whose process has gone.
func TestAClaimThatWasLostWithItsProcessMayBeDoneOrNot(t *testing.T) {
	for attempt, want := range map[int]porcupine.CheckResult{1: porcupine.Ok, 2: porcupine.Ok, 3: porcupine.Illegal} {
		h := proof.NewHistory(1)
		for _, e := range []proof.Entry{
			{Kind: proof.Began, ID: 1, What: proof.Enqueue, Who: "own", Value: "a"},
			{Kind: proof.Ended, ID: 1, At: 2, Key: "k"},
			{Kind: proof.Begun, Who: "killed", Session: "1"},
			{Kind: proof.Sent, ID: 3, At: 3, Who: "killed", Claims: []proof.Sight{{Session: "1", Key: "k"}}},
			{Kind: proof.Over, Who: "killed", At: 5},
			{Kind: proof.Begun, Who: "other", Session: "2"},
			{Kind: proof.Sent, ID: 6, At: 6, Who: "other", Claims: []proof.Sight{{Session: "2", Key: "k"}}},
			{Kind: proof.Answered, ID: 6, Fence: 10, At: 8},
			{Kind: proof.Claimed, ID: 6, At: 8, Who: "other", Value: "a", Key: "k", Fence: 10, Attempt: attempt},
			{Kind: proof.Began, ID: 9, What: proof.Ack, Who: "other", Value: "a", Key: "k", Fence: 10},
			{Kind: proof.Ended, ID: 9, At: 11, Key: "k"},
			{Kind: proof.Began, ID: 12, What: proof.Empty, Who: "own"},
			{Kind: proof.Ended, ID: 12, At: 13},
		} {
			h.Note(e)
		}
		result, faults := h.Verdict()
		assert.Equal(t, want, result, "attempt %d: %v", attempt, faults)
	}
}
