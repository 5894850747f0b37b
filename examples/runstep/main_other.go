//go:build !unix

// Runstep needs process groups, which only Unix has.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "runstep: there are no process groups on this system")
	os.Exit(1)
}
