// Package byhand holds the code from which docs/adopting.md starts. It has the
// faults that the page lists: do not copy it.
package byhand
