package parse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A tag would change a value, or be passed over.
func TestTagsThatAreNotSupported(t *testing.T) {
	for data, want := range map[string]string{
		"j: {script: !!binary aGVsbG8=}":                             `1:13: the tag "!!binary"`,
		"j: !!set {script}":                                          `1:4: the tag "!!set"`,
		"j: !!omap [{script: x}]":                                    `1:4: the tag "!!omap"`,
		"j: !!str {script: x}":                                       `1:4: the tag "!!str"`,
		"j: {script: !!map [x]}":                                     `1:13: the tag "!!map"`,
		"j: {script: x, when: !!null never}":                         `1:22: the tag "!!null"`,
		"j: {script: x, variables: {B: !!bool zz}}":                  `1:31: the tag "!!bool"`,
		"j: {script: x, retry: !!int 1}":                             `1:23: the tag "!!int"`,
		"j: {script: !!python/object x}":                             `1:13: the tag "!!python/object"`,
		"j: {script: !<tag:foo,2000:bar> x}":                         `1:13: the tag "tag:foo,2000:bar"`,
		"%TAG !e! tag:example.com,2000:\n---\nj: {script: !e!ref x}": `3:13: the tag "tag:example.com,2000:ref"`,
		"j: {script: x, !secret when: never}":                        `1:16: the tag "!secret"`,
		"j: {script: x, variables: {D: !!timestamp soon}}":           `1:31: the tag "!!timestamp"`,
		".a: &a [x]\nj: {script: !custom *a}":                        `2:`,
		"j: {script: [x, !!seq {a: b}]}":                             `1:17: the tag "!!seq"`,
		".a: &a {script: x}\nj: {!!merge x: *a}":                     `2:5: the tag "!!merge"`,
		"j: {script: x, artifacts: {paths: !!set {a, b}}}":           `1:35: the tag "!!set"`,
	} {
		require.Contains(t, wrong(t, data).Error(), want, "%s", data)
	}
}

// These are what the values are anyway, or make a text of them.
func TestTagsThatSayWhatAValueIs(t *testing.T) {
	p := right(t, `
.base: &base !!map {script: !!seq [!!str x]}
j:
  <<: *base
  variables: {N: !!str 1.10, Y: !!str yes, O: ! text}
`)
	require.Equal(t, []string{"x"}, p.Jobs[0].Script)
	require.Equal(t, []string{"N=1.10", "Y=yes", "O=text"}, values(p.Jobs[0]))
}
