package mask

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// However output comes in pieces, no secret is in what is passed on, and nothing
// else is missing.
func TestSecretsAreHiddenInAnyPieces(t *testing.T) {
	secrets := []string{"s3cret", "s3cret-longer", "crete", "xy"}
	for text, want := range map[string]string{
		"a s3cret b":            "a [MASKED] b",
		"s3cret-longer, s3cret": "[MASKED], [MASKED]",
		"s3cret-long":           "[MASKED]-long",
		"s3cre":                 "s3cre",
		"s3s3cret":              "s3[MASKED]",
		"s3crete":               "[MASKED]e",
		"crete\ns3c":            "[MASKED]\ns3c",
		"xy is too short":       "xy is too short",
		"":                      "",
	} {
		for size := 1; size <= len(text)+1; size++ {
			var out bytes.Buffer
			m := New(&out, secrets)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				written, err := m.Write([]byte(rest[:n]))
				require.NoError(t, err)
				require.Equal(t, n, written)
				rest = rest[n:]
			}
			require.NoError(t, m.Flush())
			require.Equal(t, want, out.String(), "%q in pieces of %d", text, size)
		}
	}
}

// Text that cannot begin a secret is not held back: it is there when Write returns.
func TestOtherOutputIsNotHeldBack(t *testing.T) {
	var out strings.Builder
	m := New(&out, []string{"s3cret"})
	_, _ = m.Write([]byte("Password? "))
	require.Equal(t, "Password? ", out.String())
	_, _ = m.Write([]byte("yes s3"))
	require.Equal(t, "Password? yes ", out.String())
	_, _ = m.Write([]byte("x\n"))
	require.Equal(t, "Password? yes s3x\n", out.String())
}

func FuzzMask(f *testing.F) {
	f.Add("a s3cret b", "s3cret", "cret-", 2)
	f.Fuzz(func(t *testing.T, text, one, other string, size int) {
		var out, whole strings.Builder
		m, n := New(&out, []string{one, other}), New(&whole, []string{other, one})
		size = max(1, min(size, 64))
		for rest := text; rest != ""; {
			k := min(size, len(rest))
			_, _ = m.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		_, _ = n.Write([]byte(text))
		_ = m.Flush()
		_ = n.Flush()
		require.Equal(t, whole.String(), out.String(), "pieces do not matter")
	})
}

func TestSecretsOfAText(t *testing.T) {
	require.Equal(t, "a [MASKED] b [MASKED]c", Text("a secret b secretsharec", []string{"secret", "secretshare", "b"}))
	require.Equal(t, "none", Text("none", nil))
}
