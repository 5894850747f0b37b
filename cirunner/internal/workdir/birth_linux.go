package workdir

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// birth tells a process from all others that have had its number: the boot of the machine, and the time since then
// at which the process was started. It is empty for a process that is not there.
func birth(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const start = 22 - 3 // the field of the start time, counted from the state
	if err != nil || len(f) <= start {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + string(f[start])
}

// lives reports whether a process has not come to its end. Before that its children are not those of another.
func lives(pid int) bool {
	s, ok := readStat(pid)
	return ok && s.state != 'Z' && s.state != 'X'
}

// groupLives reports whether a process group has a process that has not ended.
func groupLives(group int) bool {
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok && s.group == group && s.state != 'Z' {
			return true
		}
	}
	return false
}
