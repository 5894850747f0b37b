package measure

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Begin is where and when a program begins to measure.
func Begin(program string, quick bool) Ran {
	return Ran{
		Program: program, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.GOMAXPROCS(0),
		Began: time.Now().UTC().Format(time.DateOnly), Quick: quick, Load: Load(),
	}
}

// Load is how many processes wanted a processor in the last minute, on average; negative where that is not told.
func Load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	var load float64
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	if err != nil {
		return -1
	}
	return load
}
