package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// demo is the program at work on a folder of its own, with somebody who changes
// what is in it.
func demo(ctx context.Context, cfg config, std cli.Streams) (err error) {
	folder, err := os.MkdirTemp("", "thumbnails-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	cfg.delay = min(cfg.delay, 100*time.Millisecond)
	if err := cfg.folders(folder); err != nil {
		return err
	}
	s, err := open(cfg, std)
	if err != nil {
		return err
	}
	defer s.close()
	s.book.say("a demo in %s\n", cfg.folder)
	err = s.run(ctx, func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, s.watch, async.Daemon())
			return s.play(ctx)
		})
	})
	s.report()
	return errors.Join(err, s.book.err())
}

// play changes the folder, waits until the thumbnails are right, and closes the
// queue.
func (s *studio) play(ctx context.Context) error {
	kinds := []string{".jpg", ".png", ".gif"}
	for i := range 12 {
		name := fmt.Sprintf("picture-%02d%s", i, kinds[i%len(kinds)])
		if err := s.paint(name, 300+20*i, 200, i); err != nil {
			return err
		}
	}
	s.book.say("there are 12 new pictures\n")
	if err := s.until(ctx, func() bool { return s.book.count().made >= 12 }); err != nil {
		return err
	}
	for i := range 50 {
		if err := s.paint("picture-00.jpg", 300, 200, i); err != nil {
			return err
		}
	}
	s.book.say("picture-00.jpg was changed 50 times\n")
	if err := os.Remove(filepath.Join(s.cfg.folder, "picture-01.png")); err != nil {
		return err
	}
	s.book.say("picture-01.png was deleted\n")
	whole, err := encode("picture-02.gif", 300, 200, 0)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.cfg.folder, "picture-02.gif"), whole[:len(whole)/2], 0o666); err != nil {
		return err
	}
	s.book.say("picture-02.gif lost its second half\n")
	err = s.until(ctx, func() bool {
		queued, inProgress := s.queue.Len()
		done := s.book.count()
		return done.givenUp == 1 && done.removed == 1 && queued+inProgress == 0 && s.upToDate("picture-00.jpg")
	})
	s.queue.Close()
	return err
}

// until waits until ok says true.
func (s *studio) until(ctx context.Context, ok func() bool) error {
	probe := func(context.Context) (struct{}, bool, error) { return struct{}{}, ok(), nil }
	_, err := async.Poll(ctx, async.Every(20*time.Millisecond), probe, async.Name("demo")).Await(ctx, time.Minute)
	return err
}

// upToDate reports whether there is a thumbnail of a picture as it is.
func (s *studio) upToDate(name string) bool {
	info, err := s.folder.Lstat(name)
	return err == nil && s.gallery.has(name, info.ModTime())
}

// paint writes a picture into the folder of a demo.
func (s *studio) paint(name string, w, h, hue int) error {
	data, err := encode(name, w, h, hue)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.cfg.folder, name), data, 0o666)
}

// encode returns a picture in the format that its name tells.
func encode(name string, w, h, hue int) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch img := painting(w, h, hue); {
	case strings.HasSuffix(name, ".png"):
		err = png.Encode(&b, img)
	case strings.HasSuffix(name, ".gif"):
		err = gif.Encode(&b, img, nil)
	default:
		err = jpeg.Encode(&b, img, nil)
	}
	return b.Bytes(), err
}

// shades are what paintings are made of.
var shades = func() (p color.Palette) {
	for i := range 256 {
		p = append(p, color.RGBA{uint8(i), uint8(255 - i), uint8(i * 7), 255})
	}
	return p
}()

// painting returns stripes.
func painting(w, h, hue int) *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, w, h), shades)
	for y := range h {
		for x := range w {
			img.Pix[y*img.Stride+x] = uint8(hue*16 + (x/8+y/8)%64)
		}
	}
	return img
}
