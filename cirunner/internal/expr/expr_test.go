package expr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var some = map[string]string{
	"NAME": "a value", "PATHS": "some/path/here", "ROOTED": "/some/path/here", "EMPTY": "", "BLANK": " ",
	"RE": "/^a v/", "BAD": "/(/", "PLAIN": "a value", "T": "true",
}

// The values that GitLab gives to expressions: the table of its own tests, and of its page.
func TestExpressionsAreTrueWhereGitLabsAre(t *testing.T) {
	for text, want := range map[string]bool{
		`$NAME == "a value"`: true, `"a value" == $NAME`: true, `$NAME == 'other'`: false,
		`$NAME == null`: false, `$EMPTY == null`: false, `$NONE == null`: true, `null == $NONE`: true,
		`$NONE == ""`: false, `"" == $EMPTY`: true, `$NAME != null`: true, `$NONE != null`: false,
		`$NAME == $PLAIN`: true, `$NAME != $PLAIN`: false,
		`$NAME`: true, `$NONE`: false, `$EMPTY`: false, `$BLANK`: false,
		`$NAME =~ /val.*e$/`: true, `$NAME =~ /^val/`: false, `$NAME =~ /VAL/`: false, `$NAME =~ /VAL/i`: true,
		`$EMPTY =~ /val/`: false, `$NONE =~ /val/`: false, `$NONE =~ /^$/`: true,
		`$PATHS =~ /path\/here/`: true, `$ROOTED =~ /^\/some\/path\/here$/`: true,
		`$NAME !~ /val/`: false, `$NAME !~ /^val/`: true, `$NONE !~ /val/`: true,
		`$NAME =~ $RE`: true, `$NAME =~ $NONE`: false, `$NAME !~ $NONE`: true,
		`$NAME =~ $PLAIN`: false, `$NAME !~ $BAD`: false,
		`$NAME && "text"`: true, `$NAME && $EMPTY`: false, `$EMPTY && $NAME`: true, `$NONE && $NAME`: false,
		`$NAME && null`: false, `$NONE || $NAME`: true, `$EMPTY || $NAME`: false, `null || null`: false,
		`$NAME && null || $EMPTY == ""`: true, `$NONE == null || $NAME`: true,
		`$NONE && $NONE || $NAME`: true, `$NONE && ($NONE || $NAME)`: false,
		`($NAME =~ /x/ || $PATHS =~ /some/) && $T == "true"`: true,
		`((($NAME)))`: true, `!$NONE`: true, `!$NAME`: false, `!($NAME == "x")`: true, `!$EMPTY && $NAME`: true,
		`$T == true`: false, `true`: true, `false || $NAME`: true,
		`$NAME=="a value"&&$T=='true'`: true,
	} {
		e, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, e.True(some), text)
		require.Equal(t, text, e.String())
	}
}

func TestWhatIsNoExpression(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "a variable or a value is missing before the end at character 1",
		"$A ==":                  "a variable or a value is missing before the end at character 6",
		"== 'x'":                 "a variable or a value is missing before == at character 1",
		`$A "x"`:                 `"x" is not expected at character 4`,
		"$A = 1":                 `"=" is no part of an expression at character 4`,
		"$A == main":             "main is no part of an expression: a variable begins with $, a text is in quotes at character 7",
		"${A} == 'x'":            "a variable is written $NAME here, without braces at character 1",
		"$ == 'x'":               "a variable needs a name, such as $NAME at character 1",
		"$A == 'x":               "a quote is not closed at character 7",
		"$A =~ /x":               "a regular expression is not closed at character 7",
		"$A =~ /(/":              "this is no regular expression: ",
		"$A =~ //":               "a regular expression is empty at character 7",
		"($A":                    "this ( is not closed at character 1",
		"$A)":                    ") is not expected at character 3",
		strings.Repeat("(", 60):  "too deep",
		strings.Repeat("!", 200): "more than 99 parts",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

// FuzzParse: no expression panics, takes long, or is something else when it is
// read again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`$A == "b" && ($C =~ /d\/e/i || !$F) && null != $G`, "$A =~ $RE", "!!!true", "('" + "'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			at := err.(*Error).Offset
			require.True(t, at >= 0 && at <= len(text))
			return
		}
		negated, err := Parse("!(" + text + ")")
		if err != nil { // one token too many, or too deep
			require.True(t, strings.Contains(err.Error(), "parts") || strings.Contains(err.Error(), "too deep"))
			return
		}
		if _, err := e.root.value(some); err == nil {
			require.Equal(t, !e.True(some), negated.True(some))
		}
	})
}
