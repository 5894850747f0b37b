package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A node has a value: nil for null, a string, a bool or a *regexp.Regexp.
type node interface {
	value(variables map[string]string) (any, error)
}

type name string

func (n name) value(variables map[string]string) (any, error) {
	if v, ok := variables[string(n)]; ok {
		return v, nil
	}
	return nil, nil
}

type constant struct{ is any }

func (c constant) value(map[string]string) (any, error) { return c.is, nil }

type not struct{ operand node }

func (n not) value(variables map[string]string) (any, error) {
	v, err := n.operand.value(variables)
	if s, ok := v.(string); ok {
		return strings.TrimSpace(s) == "", err
	}
	return !truthy(v), err
}

type binary struct {
	operator    kind
	left, right node
}

func (b binary) value(variables map[string]string) (any, error) {
	left, err := b.left.value(variables)
	if err != nil {
		return nil, err
	}
	if b.operator == "&&" && !truthy(left) || b.operator == "||" && truthy(left) {
		return left, nil
	}
	right, err := b.right.value(variables)
	if err != nil {
		return nil, err
	}
	switch b.operator {
	case "==":
		return equal(left, right), nil
	case "!=":
		return !equal(left, right), nil
	case "=~":
		found, err := matches(left, right)
		return found, err
	case "!~":
		found, err := matches(left, right)
		return !found, err
	}
	return right, nil
}

// truthy is what && and || ask: an empty text is true.
func truthy(v any) bool { return v != nil && v != false }

func equal(a, b any) bool {
	if re, ok := a.(*regexp.Regexp); ok {
		other, ok := b.(*regexp.Regexp)
		return ok && re.String() == other.String()
	}
	return a == b
}

var errPattern = errors.New("this is no regular expression")

// matches reports whether a text matches. A null matches as an empty text
// does, and nothing matches null. A pattern may be the value of a variable.
func matches(text, by any) (bool, error) {
	re, ok := by.(*regexp.Regexp)
	if !ok {
		s, isText := by.(string)
		if by == nil || by == false {
			return false, nil
		}
		if !isText {
			return false, errPattern
		}
		var err error
		if re, err = compile(s); err != nil {
			return false, err
		}
	}
	switch text := text.(type) {
	case string:
		return re.MatchString(text), nil
	case bool:
		return re.MatchString(fmt.Sprint(text)), nil
	case *regexp.Regexp:
		return re.MatchString(text.String()), nil
	}
	return re.MatchString(""), nil
}

// flags are those of a regular expression; they mean in Go what they mean in RE2,
// which GitLab uses.
const flags = "ismU"

// compile makes a regular expression of what stands between slashes.
func compile(s string) (*regexp.Regexp, error) {
	last := strings.LastIndexByte(s, '/')
	if last < 1 || s[0] != '/' || strings.Trim(s[last+1:], flags) != "" {
		return nil, fmt.Errorf("a regular expression stands between slashes, such as /^v[0-9]/")
	}
	text := strings.ReplaceAll(s[1:last], `\/`, "/")
	if text == "" {
		return nil, fmt.Errorf("a regular expression is empty")
	}
	if s[last+1:] != "" {
		text = "(?" + s[last+1:] + ")" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("this is no regular expression: %w", err)
	}
	return re, nil
}

// Pattern returns the regular expression that s is, between slashes and with
// flags, or nil if it is none: a name of a branch, say.
func Pattern(s string) *regexp.Regexp {
	re, err := compile(s)
	if err != nil {
		return nil
	}
	return re
}
