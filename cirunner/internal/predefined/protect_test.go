//go:build unix

package predefined

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Without patterns the default branch is protected, and no tag.
func TestProtectedRefs(t *testing.T) {
	for _, c := range []struct {
		wish     Wish
		patterns []string
		want     string
	}{
		{Wish{Branch: "main"}, nil, "true"},
		{Wish{Branch: "topic"}, nil, "false"},
		{Wish{Tag: "main"}, nil, "false"},
		{Wish{Tag: "v1"}, []string{"v*"}, "true"},
		{Wish{Branch: "main"}, []string{"v*"}, "false"},
		{Wish{Branch: "topic", Merge: "main"}, nil, "false"},
		{Wish{Branch: "topic", Merge: "main"}, []string{"main", "topic"}, "true"},
		{Wish{}, nil, "false"}, // local, which is no project's default branch
	} {
		r := New(t.Context(), t.TempDir(), c.wish)
		r.Protect(c.patterns)
		require.Equal(t, c.want, r.Variables["CI_COMMIT_REF_PROTECTED"], "%+v", c)
	}
}
