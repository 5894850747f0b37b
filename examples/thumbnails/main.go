// Thumbnails keeps a thumbnail of each picture in a folder up to date, until it is
// told to stop.
//
//	go run ./examples/thumbnails                   # once, in a folder of its own
//	go run ./examples/thumbnails ~/Pictures        # until Ctrl-C
//	go run ./examples/thumbnails -once ~/Pictures
//
// queue.go is the queue: sixty lines, to be read first. picture.go makes a thumbnail,
// and studio.go looks which are missing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: thumbnails [flags] [folder]

Thumbnails keeps a thumbnail of each picture in a folder up to date, in the folder
thumbnails in it. Without a folder it draws some pictures into one of its own.
Exit status: 0 done, 1 not, or -once has given pictures up, 2 wrong arguments,
130 and 143 stopped by a signal.

`

func main() {
	s := &studio{gaveUp: map[string]time.Time{}}
	flag.BoolVar(&s.once, "once", false, "look once, and end when all that was found is done")
	flag.DurationVar(&s.every, "every", time.Second, "look this `often`")
	flag.IntVar(&s.workers, "workers", runtime.NumCPU(), "work on `n` pictures at once")
	flag.IntVar(&s.size, "size", 200, "the longer side of a thumbnail, in `pixels`")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 1 || s.every <= 0 || s.workers < 1 || s.workers > 1000 || s.size < 1 || s.size > 10_000 {
		fmt.Fprintln(os.Stderr, "thumbnails: one folder at most; -workers is 1 to 1000, -size 1 to 10000, -every more than 0")
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error {
		if flag.NArg() == 1 {
			return s.run(ctx, flag.Arg(0))
		}
		folder, err := drawn()
		defer func() { _ = os.RemoveAll(folder) }()
		if err != nil {
			return err
		}
		s.once = true
		return s.run(ctx, folder)
	})
}

// drawn draws some pictures into a folder.
func drawn() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "thumbnails-"); err != nil {
		return "", err
	}
	for i := range 4 {
		var picture bytes.Buffer
		_ = png.Encode(&picture, image.NewGray(image.Rect(0, 0, 640, 480+i))) // a Buffer takes it
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, fmt.Sprintf("picture-%d.png", i)), picture.Bytes(), 0o600))
	}
	return folder, err
}
