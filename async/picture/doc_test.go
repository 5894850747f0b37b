package picture

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide shows the text as it is.
func TestTheGuideShowsTheText(t *testing.T) {
	guide, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	require.Contains(t, string(guide), "```\n"+textOf(t, sample(), 0)+"```\n")
}
