//go:build !unix

package lease_test

// beStopped is the other process of a test that needs signals.
func beStopped() {}
