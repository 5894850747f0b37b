//go:build amd64 || arm64

package explore

// getg returns a number that no other living goroutine has. A later goroutine
// may have the same one: see World.self.
func getg() uintptr
