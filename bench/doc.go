// Package bench holds ambit beside its peers. It is a module of its own, so that
// what it compares with is nobody's dependency.
package bench
