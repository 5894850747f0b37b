package plain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

func TestWhatHasNoPictureIsWritten(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"Grüße, 世界 👩‍💻":               "Grüße, 世界 👩‍💻",
		"\x1b]0;title\a\x1b[2J":       `\x1b]0;title\x07\x1b[2J`,
		"a\nb\tc\r":                   `a\nb\tc\r`,
		"\u202egnp.exe":               `\u{202e}gnp.exe`,
		"a\u2066b\u2069 \u200b\ufeff": `a\u{2066}b\u{2069} \u{200b}\u{feff}`,
		"\u2028\u2029\u0085\u009b2J":  `\u{2028}\u{2029}\u{85}\u{9b}2J`,
		"\xff\xfe\x00ok\ufffd":        `\xff\xfe\x00ok` + "\ufffd",
	} {
		assert.Equal(t, want, plain.Line(in), "%q", in)
	}
	assert.Equal(t, "a\n\tb\\x1b", plain.Text("a\n\tb\x1b"), "a text keeps its lines")
}

func TestTheBeginningOfAText(t *testing.T) {
	assert.Equal(t, "abc", plain.Head("abc", 3))
	assert.Equal(t, "ab…", plain.Head("abc", 2))
	assert.Equal(t, "a…", plain.Head("aü", 2))
	assert.Equal(t, "…", plain.Head("世", 2))
	assert.Equal(t, "…", plain.Head("\x80\x80\x80", 2))
}
