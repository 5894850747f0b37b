// Package expr evaluates the expressions of rules:if, workflow:rules:if and
// only:variables, as GitLab does:
//
//	$CI_COMMIT_BRANCH == "main" && $CI_COMMIT_MESSAGE !~ /\[skip\]/i
//
// There are variables ($NAME), texts in single or double quotes, null, true and
// false, regular expressions between slashes with the flags i, s, m and U,
// the operators ==, !=, =~, !~, &&, || and !, and parentheses. && binds tighter
// than ||, and the comparisons tighter than both.
//
// A variable that does not exist is null. An expression is true if its value is
// true, or a text that is not blank. Between operands of && and ||, however, only
// null and false are false: "$EMPTY && $OTHER" is true if $OTHER is not empty.
// GitLab does so, and tests it.
package expr

import (
	"fmt"
	"strings"
)

// An Expr is an expression that was parsed. Goroutines may share it.
type Expr struct {
	root node
	text string
}

// String returns the expression as it was written.
func (e *Expr) String() string { return e.text }

// True reports whether the expression is true with these variables. A regular
// expression that comes from a variable and is none makes the expression false.
func (e *Expr) True(variables map[string]string) bool {
	v, err := e.root.value(variables)
	if err != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v) != ""
	case bool:
		return v
	}
	return v != nil
}

// An Error is what is wrong with an expression.
type Error struct {
	Offset int // in bytes, from 0
	Text   string
}

// Error says what is wrong, and at which character, counted from 1.
func (e *Error) Error() string { return fmt.Sprintf("%s at character %d", e.Text, e.Offset+1) }

// Parse parses an expression. Its error is an *Error.
func Parse(text string) (*Expr, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens}
	root, err := p.either()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, &Error{t.at, fmt.Sprintf("%s is not expected", t)}
	}
	return &Expr{root: root, text: text}, nil
}
