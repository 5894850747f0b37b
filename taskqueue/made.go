package taskqueue

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// madeAt returns when this program was made: the time of its commit, if it was built with one
// that it knows, else that of its file, zero if there is none.
var madeAt = sync.OnceValue(func() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		if at := commitTime(info.Settings); !at.IsZero() {
			return at
		}
	}
	name, err := os.Executable()
	if err != nil {
		return time.Time{}
	}
	file, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return file.ModTime()
})

// commitTime returns the time of the commit that a program was built of, zero if it is not
// known, or if files were changed since.
func commitTime(settings []debug.BuildSetting) (at time.Time) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.time":
			at, _ = time.Parse(time.RFC3339, s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			return time.Time{}
		}
	}
	return at
}
