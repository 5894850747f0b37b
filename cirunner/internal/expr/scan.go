package expr

import (
	"fmt"
	"strings"
)

// maxTokens bounds an expression, as in GitLab.
const maxTokens = 100

// A kind says what a token is. Operators and parentheses are themselves.
type kind string

const (
	end      kind = "the end"
	variable kind = "a variable"
	literal  kind = "a text"
	pattern  kind = "a regular expression"
	word     kind = "a word" // null, true or false
)

type token struct {
	kind kind
	text string // the name, what is between the quotes, or the pattern with its slashes and flags
	at   int
}

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case variable:
		return "$" + t.text
	case literal:
		return fmt.Sprintf("%q", t.text)
	case pattern, word:
		return t.text
	}
	return string(t.kind)
}

// operators are in an order in which none is found in place of a longer one.
var operators = []kind{"(", ")", "==", "=~", "!=", "!~", "&&", "||", "!"}

// scan returns the tokens of an expression, the last of which is the end.
func scan(s string) ([]token, error) {
	var tokens []token
	for at := 0; ; {
		for at < len(s) && strings.IndexByte(" \t\r\n\f\v", s[at]) >= 0 {
			at++
		}
		if at == len(s) {
			return append(tokens, token{kind: end, at: at}), nil
		}
		if len(tokens) == maxTokens-1 {
			return nil, &Error{at, fmt.Sprintf("the expression has more than %d parts", maxTokens-1)}
		}
		t, size, err := next(s[at:])
		if err != "" {
			return nil, &Error{at, err}
		}
		t.at = at
		tokens = append(tokens, t)
		at += size
	}
}

// next returns the token that s begins with, and its size. err is what is wrong.
func next(s string) (t token, size int, err string) {
	switch s[0] {
	case '$':
		n := nameLen(s[1:])
		if n == 0 && strings.HasPrefix(s, "${") {
			return t, 0, "a variable is written $NAME here, without braces"
		}
		if n == 0 {
			return t, 0, "a variable needs a name, such as $NAME"
		}
		return token{kind: variable, text: s[1 : n+1]}, n + 1, ""
	case '"', '\'':
		n := strings.IndexByte(s[1:], s[0])
		if n < 0 {
			return t, 0, "a quote is not closed"
		}
		return token{kind: literal, text: s[1 : n+1]}, n + 2, ""
	case '/':
		n := patternLen(s)
		if n == 0 {
			return t, 0, "a regular expression is not closed"
		}
		return token{kind: pattern, text: s[:n]}, n, ""
	}
	for _, o := range operators {
		if strings.HasPrefix(s, string(o)) {
			return token{kind: o}, len(o), ""
		}
	}
	n := nameLen(s)
	switch s[:n] {
	case "null", "true", "false":
		return token{kind: word, text: s[:n]}, n, ""
	case "":
		return t, 0, fmt.Sprintf("%q is no part of an expression", firstRune(s))
	}
	return t, 0, fmt.Sprintf("%s is no part of an expression: a variable begins with $, a text is in quotes", s[:n])
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}

func nameLen(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// patternLen returns the length of the regular expression that s begins with: to
// the first slash that has no backslash before it, and its flags.
func patternLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '/':
			for i++; i < len(s) && strings.IndexByte(flags, s[i]) >= 0; i++ {
			}
			return i
		}
	}
	return 0
}
