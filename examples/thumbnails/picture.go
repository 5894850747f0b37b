package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // what can be decoded
	_ "image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/image/draw"
)

// A gallery is a folder of pictures and one of their thumbnails. The thumbnail of
// a.jpg is a.jpg.png, and has the time of its picture: that is how it is known to
// agree with it, also after a restart.
type gallery struct {
	pictures, thumbnails string
	size                 int // of the longer side of a thumbnail, in pixels
}

const suffix = ".png"

// largest is how many pixels a picture may have: each takes four bytes of memory.
const largest = 100_000_000

func isPicture(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".jpg", ".jpeg", ".png", ".gif"}, strings.ToLower(filepath.Ext(name)))
}

// update makes the thumbnail of a picture agree with it: if the picture is gone, so is
// the thumbnail then.
func (g *gallery) update(ctx context.Context, name string) error {
	thumbnail := filepath.Join(g.thumbnails, name+suffix)
	file, err := os.Open(filepath.Join(g.pictures, name))
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(thumbnail) // which is content if there is none
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat() // before it is read: a change while it is read is another time
	if err != nil {
		return err
	}
	if t, err := os.Stat(thumbnail); err == nil && t.ModTime().Equal(info.ModTime()) {
		return nil // it was found once more while it was made
	}
	// A few bytes can say that they are a picture of many gigabytes.
	if c, _, err := image.DecodeConfig(file); err == nil && int64(c.Width)*int64(c.Height) > largest {
		return fmt.Errorf("cannot be decoded: %d x %d pixels are too many", c.Width, c.Height)
	}
	_, _ = file.Seek(0, io.SeekStart) // if that fails, so does the next read
	picture, _, err := image.Decode(file)
	if err != nil {
		return fmt.Errorf("cannot be decoded: %w", err)
	}
	small := g.shrink(picture)
	if ctx.Err() != nil {
		return context.Cause(ctx) // it took too long: another attempt may be under way
	}
	return g.save(thumbnail, small, info.ModTime())
}

// shrink returns a copy whose longer side is no longer than that of a thumbnail.
func (g *gallery) shrink(picture image.Image) image.Image {
	b := picture.Bounds()
	longer := max(b.Dx(), b.Dy(), g.size)
	to := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*g.size/longer), max(1, b.Dy()*g.size/longer)))
	draw.CatmullRom.Scale(to, to.Bounds(), picture, b, draw.Src, nil)
	return to
}

// save writes a thumbnail to a hidden file and gives it its name when it is whole. The
// hidden name needs no randomness: the queue gives no picture to two workers at once, and
// if a disk hangs while one saves, the next finds the file and fails.
func (g *gallery) save(path string, thumbnail image.Image, changed time.Time) error {
	hidden := filepath.Join(g.thumbnails, "."+filepath.Base(path))
	file, err := os.OpenFile(hidden, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	err = errors.Join(png.Encode(file, thumbnail), file.Close(), os.Chtimes(hidden, changed, changed))
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		_ = os.Remove(hidden)
	}
	return err
}

// stale returns the pictures whose thumbnails do not agree with them, with their
// times, and no time for those that are gone. A file that a killed run has left half written is
// removed by the first call.
func (g *gallery) stale(first bool) (map[string]time.Time, error) {
	pictures, err := times(g.pictures)
	if err != nil {
		return nil, err // a folder that is gone is no folder of deleted pictures
	}
	thumbnails, err := times(g.thumbnails)
	if err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	for name, changed := range pictures {
		if isPicture(name) && !thumbnails[name+suffix].Equal(changed) {
			all[name] = changed
		}
	}
	for thumbnail := range thumbnails {
		name := strings.TrimSuffix(thumbnail, suffix)
		if strings.HasPrefix(name, ".") {
			if first && isPicture(name[1:]) {
				_ = os.Remove(filepath.Join(g.thumbnails, thumbnail))
			}
		} else if _, there := pictures[name]; !there && isPicture(name) && name != thumbnail {
			all[name] = time.Time{}
		}
	}
	return all, nil
}

// times returns the files in a folder with the times of their last changes.
func times(folder string) (map[string]time.Time, error) {
	entries, err := os.ReadDir(folder)
	files := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files[e.Name()] = info.ModTime()
		}
	}
	return files, err
}
