package main

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A config is what the arguments say. Without a folder it is the demo.
type config struct {
	folder   string
	out      string
	once     bool
	verbose  bool
	size     int // of the longer side of a thumbnail
	pixels   int // of a picture, in millions
	workers  int
	attempts int
	delay    time.Duration // before the second attempt
	settle   time.Duration // from a change until it is looked at
	rescan   time.Duration // between looks at everything
	limit    time.Duration // of one thumbnail
}

// longestDelay is that before a retry, however many there were.
const longestDelay = time.Minute

// retry returns how long to wait after a number of failed attempts.
func (cfg *config) retry() async.Interval {
	return async.Backoff(cfg.delay, max(cfg.delay, longestDelay))
}

func (cfg *config) flags(flags *flag.FlagSet) {
	flags.StringVar(&cfg.out, "out", "", "put the thumbnails into this `folder` (default: thumbnails in the watched one)")
	flags.BoolVar(&cfg.once, "once", false, "end when everything in the folder has been worked off")
	flags.BoolVar(&cfg.verbose, "v", false, "tell every step, not only what goes wrong")
	flags.IntVar(&cfg.size, "size", 160, "make the longer side of a thumbnail `n` pixels")
	flags.IntVar(&cfg.pixels, "megapixels", 50, "refuse pictures of more than `n` million pixels")
	flags.IntVar(&cfg.workers, "workers", min(4, runtime.NumCPU()), "make `n` thumbnails at a time")
	flags.IntVar(&cfg.attempts, "attempts", 5, "give a picture up after `n` failed attempts, until it changes")
	flags.DurationVar(&cfg.delay, "delay", time.Second, "wait this `time` before the second attempt, then twice as long each time, up to a minute")
	flags.DurationVar(&cfg.settle, "settle", 200*time.Millisecond, "look at a changed picture this `time` after the change")
	flags.DurationVar(&cfg.rescan, "rescan", 30*time.Second, "look at the whole folder each `time`, for changes that nobody told of")
	flags.DurationVar(&cfg.limit, "limit", time.Minute, "allow each attempt this `time`")
}

// parse reads what follows the flags, and refuses what makes no sense.
func (cfg *config) parse(args []string) error {
	switch {
	case len(args) > 1:
		return cli.Usagef("there may be one folder, not %d: put flags before it", len(args))
	case len(args) == 0 && (cfg.once || cfg.out != ""):
		return cli.Usagef("-once and -out need a folder to watch")
	case cfg.size < 1 || cfg.size > 1024:
		return cli.Usagef("-size must be 1 to 1024")
	case cfg.pixels < 1 || cfg.pixels > 1000:
		return cli.Usagef("-megapixels must be 1 to 1000; a worker needs up to 8 MB for each, more for odd shapes")
	case cfg.workers < 1 || cfg.workers > 256:
		return cli.Usagef("-workers must be 1 to 256")
	case cfg.attempts < 1:
		return cli.Usagef("-attempts must be 1 or more")
	case cfg.delay <= 0 || cfg.rescan <= 0 || cfg.limit <= 0:
		return cli.Usagef("-delay, -rescan and -limit must be more than 0")
	case cfg.settle < 0:
		return cli.Usagef("-settle must not be negative; 0 looks at once")
	case len(args) == 0:
		return nil
	}
	return cfg.folders(args[0])
}

// folders checks the folders, and notes their names without symbolic links: they
// are compared with each other, and with those that events tell.
func (cfg *config) folders(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return cli.Usagef("cannot watch %s: %v", folder, cause(err))
	case !info.IsDir():
		return cli.Usagef("%s is no folder; give the one that holds it", folder)
	}
	if cfg.folder, err = real(folder); err != nil {
		return err
	}
	if cfg.out == "" {
		cfg.out = filepath.Join(cfg.folder, "thumbnails")
	}
	if err := os.MkdirAll(cfg.out, 0o777); err != nil {
		return cli.Usagef("cannot make %s: %v; name another folder with -out", cfg.out, cause(err))
	}
	if cfg.out, err = real(cfg.out); err != nil {
		return err
	}
	if _, inside := below(cfg.out, cfg.folder); inside {
		return cli.Usagef("-out %s holds the watched folder: thumbnails would be watched as pictures; name another", cfg.out)
	}
	return nil
}

// real returns the absolute name of a folder without symbolic links in it.
func real(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(folder)
}

// below returns the name of path relative to folder, with slashes, and whether it
// is folder or in it. Both are absolute.
func below(folder, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(folder, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
