//go:build !unix

package main

import "os/exec"

// group does nothing where there are no process groups: the command alone is
// killed.
func group(*exec.Cmd) (kill func()) { return func() {} }
