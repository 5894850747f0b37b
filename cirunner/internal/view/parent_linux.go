package view

import (
	"bytes"
	"fmt"
	"os"
)

// parentOf returns the parent of a process, 0 if it is not known.
func parentOf(pid int) (parent int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	state := stat[bytes.LastIndexByte(stat, ')')+1:] // the name before it may hold anything
	var letter string
	_, _ = fmt.Sscan(string(state), &letter, &parent)
	return parent
}
