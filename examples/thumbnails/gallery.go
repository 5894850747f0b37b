package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// thumbnailSuffix is added to the name of a picture: photo.png has the thumbnail
// photo.png.thumb.jpg. So pictures that differ in their extension only do not
// share one, and nothing else in the folder is ever touched.
const thumbnailSuffix = ".thumb.jpg"

// lockFile is what keeps a second program away.
const lockFile = ".thumbnails.lock"

// A gallery is the folder of the thumbnails. It mirrors that of the pictures,
// whose names are those of its methods. A thumbnail has the modification time
// of the picture it was made of: that is how one knows, after a restart too,
// which are up to date.
type gallery struct {
	root *os.Root
	lock *flock.Flock
}

// ownerFile names the folder of the pictures, seen from that of the thumbnails, so
// that both may be moved together.
const ownerFile = ".thumbnails.of"

// openGallery opens a folder for the thumbnails of those in another. No other
// program must have it open, nor may it be for the pictures of a third folder:
// here they would all be gone. It removes what a program that was killed has left
// unfinished.
func openGallery(folder, pictures string) (*gallery, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	g := &gallery{root, flock.New(filepath.Join(folder, lockFile))}
	locked, err := g.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another program works there; name another folder with -out")
	}
	if err == nil {
		err = g.own(folder, pictures)
	}
	if err == nil {
		err = g.clean()
	}
	if err != nil {
		g.close()
		return nil, fmt.Errorf("cannot use %s: %w", folder, err)
	}
	return g, nil
}

func (g *gallery) close() {
	_ = g.lock.Close()
	_ = g.root.Close()
}

// own makes the folder that of certain pictures, or fails if it is that of others.
func (g *gallery) own(folder, pictures string) error {
	if rel, err := filepath.Rel(folder, pictures); err == nil {
		pictures = filepath.ToSlash(rel)
	}
	owner, err := g.root.ReadFile(ownerFile)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case len(owner) == 0: // new, or of a program that was killed just then
		return g.root.WriteFile(ownerFile, []byte(pictures), 0o666)
	case string(owner) != pictures:
		return fmt.Errorf("it holds the thumbnails of %s; name another folder with -out, or remove %s there", shown(string(owner)), ownerFile)
	}
	return nil
}

// present returns an error if the folder is not there any more.
func (g *gallery) present() error {
	if !inPlace(g.root) {
		return fmt.Errorf("the folder of the thumbnails, %s, is gone, or another is in its place; start again, and what is missing is made", g.root.Name())
	}
	return nil
}

// inPlace reports whether a folder that was opened is still what its name names.
func inPlace(folder *os.Root) bool {
	was, err := folder.Stat(".")
	if err != nil {
		return false
	}
	is, err := os.Stat(folder.Name())
	return err == nil && os.SameFile(was, is)
}

// clean removes temporary files. While the lock is held they are nobody's.
func (g *gallery) clean() error {
	failed := func(_ string, err error) error { return err }
	return g.walk(".", failed, func(name string) error {
		if base := path.Base(name); strings.HasPrefix(base, ".") && strings.HasSuffix(base, tempSuffix) {
			return g.root.Remove(name)
		}
		return nil
	})
}

// walk calls f with every file in a folder, and failed with folders that cannot be
// read. One that is gone, by now perhaps, is none of them, but for the first.
func (g *gallery) walk(folder string, failed func(name string, err error) error, f func(name string) error) error {
	return fs.WalkDir(g.root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return failed(name, err)
		case d.IsDir():
			return nil
		}
		return f(name)
	})
}

// pictures calls f with the pictures in a folder that there are thumbnails of, and
// failed with folders that cannot be read.
func (g *gallery) pictures(ctx context.Context, folder string, failed func(name string, err error), f func(name string)) error {
	unread := func(name string, err error) error { failed(name, err); return ctx.Err() }
	return g.walk(folder, unread, func(name string) error {
		if picture, ok := strings.CutSuffix(name, thumbnailSuffix); ok && isPicture(picture) {
			f(picture)
		}
		return ctx.Err()
	})
}

const tempSuffix = thumbnailSuffix + ".tmp"

// put makes img the thumbnail of a picture that was changed at the given time.
// It is written elsewhere first, on to the disk, and then renamed: whoever looks
// sees the old thumbnail or the new one, whole, and so does who comes after a
// crash. The queue gives no picture to two at once, so the name of the temporary
// file is nobody else's; that it must be new would show otherwise.
func (g *gallery) put(name string, changed time.Time, img image.Image) error {
	folder, base := path.Split(name)
	temp := folder + "." + base + tempSuffix
	if folder != "" {
		if err := g.root.MkdirAll(path.Clean(folder), 0o777); err != nil {
			return err
		}
	}
	file, err := g.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return fmt.Errorf("its name leaves no room for %s behind it", tempSuffix)
	}
	if err != nil {
		return err
	}
	defer g.root.Remove(temp) // once it is renamed, there is none
	defer file.Close()        // again, or because encoding panics
	if err := fill(file, img); err != nil {
		return err
	}
	if err := g.root.Chtimes(temp, time.Now(), changed); err != nil {
		return err
	}
	return g.root.Rename(temp, name+thumbnailSuffix)
}

// fill writes img to file, on to the disk, and closes that.
func fill(file *os.File, img image.Image) error {
	w := bufio.NewWriter(file)
	err := jpeg.Encode(w, img, &jpeg.Options{Quality: 85})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// remove removes the thumbnail of a picture, if there is one.
func (g *gallery) remove(name string) (there bool, err error) {
	err = g.root.Remove(name + thumbnailSuffix)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) { // or there cannot be one
		return false, nil
	}
	return err == nil, err
}

// has reports whether there is a thumbnail of a picture as it was at the time it
// was changed. A file system may have kept less of that time.
func (g *gallery) has(name string, changed time.Time) bool {
	info, err := g.root.Lstat(name + thumbnailSuffix)
	if err != nil {
		return false
	}
	for _, unit := range [...]time.Duration{1, 100, time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second, 2 * time.Second} {
		if info.ModTime().Equal(changed.Truncate(unit)) {
			return true
		}
	}
	return false
}
