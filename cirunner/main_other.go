//go:build !unix

// Cirunner needs process groups, which only Unix has.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "cirunner: there are no process groups on this system")
	os.Exit(1)
}
