package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A handle is a descriptor of the first process of a group. It stands for the
// group, too, and still does when that process has been reaped and its number is
// another's. fd is -1 if there is none.
type handle struct {
	fd      int
	witness string // the file in /proc of a process of the group, see buried
}

// groupOf returns the group of which leader is the first process. Nobody may have
// waited for it.
func groupOf(leader *os.Process) group {
	g := group{id: leader.Pid, handle: handle{fd: -1}}
	_ = leader.WithHandle(func(fd uintptr) { // fails where the system has none: before Linux 5.4
		if own, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0); errno == 0 {
			g.fd = int(own)
		}
	})
	return g
}

// Values of linux/pidfd.h and the table of system calls, where most systems agree.
const (
	pidfdSignalProcessGroup = 4 // since Linux 6.9
	sysPidfdSendSignal      = 424
)

// handles is false where the numbers of system calls are others.
var handles = !strings.HasPrefix(runtime.GOARCH, "mips")

// send sends a signal to the group; ok is false if that cannot be done this way.
func (h handle) send(sig syscall.Signal) (err error, ok bool) {
	if h.fd < 0 || !handles {
		return nil, false
	}
	_, _, errno := syscall.Syscall6(sysPidfdSendSignal, uintptr(h.fd), uintptr(sig), 0, pidfdSignalProcessGroup, 0, 0)
	switch errno {
	case 0:
		return nil, true
	case syscall.ESRCH:
		return errno, true
	}
	return nil, false
}

// forget closes the handle.
func (h handle) forget() {
	if h.fd >= 0 {
		_ = syscall.Close(h.fd)
	}
}

// buried reports whether all of the group are dead, and only wait for a parent
// to ask for their exit status: in a container the first process often does not.
// It is false if /proc does not tell. It looks at all processes only when the
// one that it has seen alive last is that no more.
func (g *group) buried() bool {
	if g.witness != "" {
		if found, lives := g.member(g.witness); found && lives {
			return false
		}
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	dead := false
	for _, path := range stats {
		found, lives := g.member(path)
		if lives {
			g.witness = path
			return false
		}
		dead = dead || found
	}
	return dead
}

// member reports whether a process is of the group, and lives. stat is its file in
// /proc. A process of which the state cannot be told counts as alive.
func (g *group) member(stat string) (found, lives bool) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return false, false // it has ended
	}
	state, id, ok := parseStat(text)
	if !ok {
		return false, true
	}
	found = id == g.id
	return found, found && state != 'Z' && state != 'X'
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
