// Package byhand holds the forms written by hand that docs/cookbook.md
// compares its recipes with. They have the faults that the page lists: do not
// copy them.
package byhand
