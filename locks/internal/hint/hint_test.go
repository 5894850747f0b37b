package hint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks/internal/hint"
)

func TestAHintIsKeptUntilItIsTakenAndTwoAreOne(t *testing.T) {
	var b hint.Board[string]
	b.Hint("a") // nobody listens
	first, stop := b.Listen("a")
	second, stopSecond := b.Listen("a")
	other, stopOther := b.Listen("b")
	require.ElementsMatch(t, []string{"a", "b"}, b.Keys())
	b.Hint("a")
	b.Hint("a")
	for _, c := range []<-chan struct{}{first, second} {
		<-c
		require.Empty(t, c)
	}
	require.Empty(t, other)
	b.HintAll()
	<-other
	stop()
	stop()
	b.Hint("a")
	require.Len(t, first, 1, "what came before it stopped")
	require.Len(t, second, 1)
	stopSecond()
	stopOther()
	require.Zero(t, b.Len(), "nothing is kept of those that have stopped")
}
