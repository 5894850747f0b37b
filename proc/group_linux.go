package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// buried reports whether all of the group are dead, and only wait for a parent
// to ask for their exit status: in a container the first process often does not.
// It is false if /proc does not tell.
func (g group) buried() bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	member := false
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		state, id, ok := parseStat(stat)
		switch {
		case !ok:
			return false
		case id != g.id:
		case state != 'Z' && state != 'X':
			return false
		default:
			member = true
		}
	}
	return member
}

// parseStat returns the state and the process group that a line of
// /proc/PID/stat tells. The name before them is in parentheses and may hold
// any character.
func parseStat(stat []byte) (state byte, group int, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0, 0, false
	}
	group, err := strconv.Atoi(string(fields[2]))
	return fields[0][0], group, err == nil
}
