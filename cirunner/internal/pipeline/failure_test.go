package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRetryAndAllowFailureDecide(t *testing.T) {
	require.False(t, Retry{}.Again(ScriptFailure, 1))
	require.True(t, Retry{Max: 1}.Again(SystemFailure, -1))
	require.True(t, Retry{Max: 1, When: []Failure{AnyFailure}}.Again(TimeoutFailure, -1))
	require.False(t, Retry{Max: 1, When: []Failure{TimeoutFailure}}.Again(ScriptFailure, 1))
	require.True(t, Retry{Max: 1, When: []Failure{StuckFailure}}.Again(TimeoutFailure, -1))
	require.True(t, Retry{Max: 1, ExitCodes: []int{3}}.Again(ScriptFailure, 3))
	require.False(t, Retry{Max: 1, ExitCodes: []int{3}}.Again(ScriptFailure, 4))
	require.False(t, Retry{Max: 1, ExitCodes: []int{3}}.Again(SystemFailure, 3))
	require.True(t, AllowFailure{All: true}.Allows(-1))
	require.True(t, AllowFailure{ExitCodes: []int{7}}.Allows(7))
	require.False(t, AllowFailure{ExitCodes: []int{7}}.Allows(1))
}
