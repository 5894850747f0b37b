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
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: thumbnails [flags] [folder]

Thumbnails keeps a thumbnail of each picture in a folder up to date: jpeg, png and
gif. They are in the folder thumbnails in it. Without a folder it draws some
pictures into one of its own, and is done when they have their thumbnails.

Exit status: 0 done, 1 it could not work, or -once has given pictures up, 2 wrong
arguments, 130 and 143 stopped by a signal.

`

func main() {
	s := &studio{found: map[string]time.Time{}, gaveUp: map[string]time.Time{}}
	flag.BoolVar(&s.once, "once", false, "look once, and end when all that was found is done")
	flag.DurationVar(&s.every, "every", time.Second, "look this `often`")
	flag.IntVar(&s.workers, "workers", runtime.NumCPU(), "work on `n` pictures at once")
	flag.IntVar(&s.size, "size", 200, "the longer side of a thumbnail, in `pixels`")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 1 || s.every <= 0 || s.workers < 1 || s.size < 1 {
		flag.Usage()
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error {
		if flag.NArg() == 1 {
			return s.run(ctx, flag.Arg(0))
		}
		folder, err := drawn()
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(folder) }()
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
		picture := image.NewRGBA(image.Rect(0, 0, 640, 480))
		for n := range 640 * 480 {
			picture.Set(n%640, n/640, color.RGBA{uint8(n), uint8(n / 640), uint8(64 * i), 255})
		}
		file, err := os.Create(filepath.Join(folder, fmt.Sprintf("picture-%d.png", i)))
		if err != nil {
			return folder, err
		}
		if err := png.Encode(file, picture); err != nil {
			return folder, err
		}
		if err := file.Close(); err != nil {
			return folder, err
		}
	}
	return folder, nil
}
