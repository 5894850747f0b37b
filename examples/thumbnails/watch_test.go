package main

import (
	"context"
	"errors"
	"image"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// watching starts the program on two folders, with no other help than events: it
// looks at everything only once.
func watching(t *testing.T, flags ...string) (folder, out string, p *clitest.Process) {
	t.Helper()
	folder, out = t.TempDir(), t.TempDir()
	args := append([]string{"-v", "-rescan", "24h", "-settle", "0", "-delay", "1ms", "-out", out}, flags...)
	p = clitest.Start(t, nil, "thumbnails", append(args, folder)...)
	pictureIn(t, folder, "first.png", 20, 10, 0)
	p.WaitFor("first.png: a thumbnail")
	return folder, out, p
}

// stop ends the program as its users do.
func stop(t *testing.T, p *clitest.Process) {
	t.Helper()
	p.Signal(os.Interrupt)
	assert.Equal(t, 130, p.Wait())
	assert.Contains(t, p.Stderr(), "thumbnails: stopped by signal: interrupt\n")
}

// After any number of changes, at any moment, the thumbnail is that of the last.
func TestTheLastChangeWins(t *testing.T) {
	folder, out, p := watching(t)
	file := filepath.Join(folder, "a.png")
	for i := range 40 {
		w := 10 + i
		data, err := encode("a.png", w, 10, i)
		require.NoError(t, err)
		if i%2 == 0 { // written in place, in pieces
			f, err := os.Create(file)
			require.NoError(t, err)
			for len(data) > 0 {
				n, err := f.Write(data[:min(len(data), 100)])
				require.NoError(t, err)
				data = data[n:]
			}
			require.NoError(t, f.Close())
		} else {
			write(t, file, data)
		}
	}
	// Changes may follow each other within the clock of the file system, so its
	// time alone does not tell the last.
	eventually(t, "the thumbnail of the last", func() bool {
		return upToDate(folder, out, "a.png") && decoded(t, filepath.Join(out, "a.png"+thumbnailSuffix)).Bounds().Dx() == 49
	})
	stop(t, p)
	assert.ElementsMatch(t, []string{"a.png.thumb.jpg", "first.png.thumb.jpg"}, filesIn(t, out))
}

// As long as it is queued, it is queued once. (A change is looked at an hour
// later here.)
func TestAPictureThatChangesWhileItIsQueuedIsQueuedOnce(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	pictureIn(t, folder, "first.png", 20, 10, 0)
	p := clitest.Start(t, nil, "thumbnails", "-v", "-settle", "1h", "-out", out, folder)
	p.WaitFor("first.png: a thumbnail") // the first look has read the folder: the rest is events
	file := filepath.Join(folder, "a.png")
	for i := range 10 {
		data, err := encode("a.png", 20, 10, i)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o666))
		if i == 0 {
			p.WaitFor("a.png: queued")
		} else {
			p.WaitFor("a.png: not queued: it is already")
		}
	}
	stop(t, p)
	assert.Contains(t, p.Stdout(), "\nunfinished: 1\n  a.png: queued\n")
	assert.Regexp(t, `added +2 `, p.Stdout())
	assert.Regexp(t, `taken +1 `, p.Stdout())
	assert.Equal(t, []string{"first.png.thumb.jpg"}, filesIn(t, out))
}

// Folders come with pictures in them, are renamed and deleted; the thumbnails
// follow.
func TestFoldersAreFollowed(t *testing.T) {
	folder, out, p := watching(t)
	elsewhere := t.TempDir()
	pictureIn(t, elsewhere, "new/deep/a.png", 20, 10, 0)
	require.NoError(t, os.Rename(filepath.Join(elsewhere, "new"), filepath.Join(folder, "new")))
	eventually(t, "a thumbnail in a new folder", func() bool { return upToDate(folder, out, "new/deep/a.png") })

	pictureIn(t, folder, "new/deep/b.png", 20, 10, 0)
	eventually(t, "it is watched", func() bool { return upToDate(folder, out, "new/deep/b.png") })

	require.NoError(t, os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, "old")))
	eventually(t, "thumbnails under the new name, none under the old", func() bool {
		return upToDate(folder, out, "old/deep/a.png") && upToDate(folder, out, "old/deep/b.png") &&
			!exists(filepath.Join(out, "new/deep/a.png.thumb.jpg")) && !exists(filepath.Join(out, "new/deep/b.png.thumb.jpg"))
	})
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "old")))
	require.NoError(t, os.Rename(filepath.Join(folder, "first.png"), filepath.Join(folder, "second.png")))
	eventually(t, "one thumbnail", func() bool {
		files := filesIn(t, out)
		return upToDate(folder, out, "second.png") && len(files) == 1
	})
	stop(t, p)
}

// What was given up is tried again when it has changed, and only then.
func TestAPictureThatWasGivenUpIsMadeWhenItHasChanged(t *testing.T) {
	folder, out, p := watching(t)
	data, err := encode("a.png", 20, 10, 0)
	require.NoError(t, err)
	write(t, filepath.Join(folder, "a.png"), data[:len(data)/2])
	p.WaitFor("a.png: given up after 5 attempts")
	write(t, filepath.Join(folder, "a.png"), data)
	p.WaitFor("a.png: a thumbnail of 20 by 10 pixels")
	stop(t, p)
	assert.NotContains(t, p.Stdout(), "\ngiven up, until")
	assert.True(t, upToDate(folder, out, "a.png"))
}

// Thumbnails in the watched folder are none of its pictures, nor are those of
// another time.
func TestTheFolderOfTheThumbnailsIsNotWatched(t *testing.T) {
	folder := t.TempDir()
	p := clitest.Start(t, nil, "thumbnails", "-v", "-settle", "0", "-out", filepath.Join(folder, "out"), folder)
	pictureIn(t, folder, "a.png", 20, 10, 0)
	p.WaitFor("a.png: a thumbnail")
	pictureIn(t, folder, "out/stranger.png", 20, 10, 0)
	pictureIn(t, folder, "old/a.png.thumb.jpg", 20, 10, 0)
	pictureIn(t, folder, "z.png", 20, 10, 0)
	p.WaitFor("z.png: a thumbnail")
	stop(t, p)
	assert.NotContains(t, p.Stdout(), "stranger")
	assert.NotContains(t, p.Stdout(), "old/")
	assert.NotContains(t, p.Stdout(), "out/")
}

// Where the folder has gone, with the disk it was on perhaps, nothing is known
// about its pictures, and no thumbnail is removed.
func TestWithoutItsFolderTheProgramEndsAndKeepsTheThumbnails(t *testing.T) {
	folder, out := filepath.Join(t.TempDir(), "pictures"), t.TempDir()
	pictureIn(t, folder, "a.png", 20, 10, 0)
	p := clitest.Start(t, nil, "thumbnails", "-v", "-rescan", "20ms", "-settle", "0", "-out", out, folder)
	p.WaitFor("a.png: a thumbnail")
	require.NoError(t, os.Rename(folder, folder+".away"))
	require.NoError(t, os.Mkdir(folder, 0o777)) // as an empty mount point is
	assert.Equal(t, 1, waitFor(p))
	assert.Contains(t, p.Stderr(), "thumbnails: the folder "+folder+" is gone, or another is in its place\n")
	assert.Equal(t, []string{"a.png.thumb.jpg"}, filesIn(t, out))
}

func TestWithoutTheFolderOfTheThumbnailsTheProgramEnds(t *testing.T) {
	folder, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	pictureIn(t, folder, "a.png", 20, 10, 0)
	p := clitest.Start(t, nil, "thumbnails", "-v", "-rescan", "20ms", "-out", out, folder)
	p.WaitFor("a.png: a thumbnail")
	require.NoError(t, os.Rename(out, out+".away"))
	assert.Equal(t, 1, waitFor(p))
	assert.Contains(t, p.Stderr(), "thumbnails: the folder of the thumbnails, "+out+", is gone, or another is in its place; start again, and what is missing is made\n")
}

// So when the program is started before the disk is there.
func TestAFolderWithoutAnyPictureRemovesNoThumbnail(t *testing.T) {
	s, _ := openStudio(t)
	require.NoError(t, s.gallery.put("a.png", time.Now(), painting(20, 10, 0)))
	require.NoError(t, s.look(t.Context(), nil))
	assert.Empty(t, s.queue.Queued())
	pictureIn(t, s.cfg.folder, "b.png", 20, 10, 0)
	require.NoError(t, s.look(t.Context(), nil))
	assert.Equal(t, []string{"b.png", "a.png"}, s.queue.Queued())
}

// waitFor returns the status of a program that ends by itself.
func waitFor(p *clitest.Process) int {
	hung := time.AfterFunc(patience, func() { _ = syscall.Kill(p.Pid(), syscall.SIGKILL) })
	defer hung.Stop()
	return p.Wait()
}

// Without events a look finds what has changed, and asks for nothing twice.
func TestALookFindsWhatHasChanged(t *testing.T) {
	s, _ := openStudio(t)
	folder := s.cfg.folder
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"same.png", "touched.png", "new.png", "buried.png"} {
		pictureIn(t, folder, name, 20, 10, 0)
		require.NoError(t, os.Chtimes(filepath.Join(folder, name), old, old))
	}
	require.NoError(t, os.Symlink("same.png", filepath.Join(folder, "link.png")))
	for _, name := range []string{"same.png", "touched.png", "gone.png"} {
		require.NoError(t, s.gallery.put(name, old, painting(20, 10, 0)))
	}
	require.NoError(t, os.Chtimes(filepath.Join(folder, "touched.png"), old, old.Add(time.Minute)))
	info, err := os.Stat(filepath.Join(folder, "buried.png"))
	require.NoError(t, err)
	s.book.buried["buried.png"] = &page{changed: info.ModTime(), err: errors.New("no luck")}

	for range 2 {
		require.NoError(t, s.look(t.Context(), nil))
		assert.ElementsMatch(t, []string{"new.png", "touched.png", "gone.png"}, s.queue.Queued())
	}
}

// Nobody knows whether what is gone was a folder or somebody's temporary file; the
// thumbnails of what was in it are looked for, and not those of all others.
func TestWhatIsGoneIsLookedForWhereItWas(t *testing.T) {
	s, _ := openStudio(t)
	s.seen.Store(true)
	for _, name := range []string{"a.png", "deep/b.png", "old/c.png", "old/er/d.png"} {
		require.NoError(t, s.gallery.put(name, time.Now(), painting(20, 10, 0)))
	}
	gone := func(name string) {
		e := fsnotify.Event{Name: filepath.Join(s.cfg.folder, name), Op: fsnotify.Remove}
		require.NoError(t, s.event(t.Context(), nil, e))
	}
	gone("temporary")
	gone("no text \xff")
	assert.Empty(t, s.queue.Queued())
	gone("old")
	assert.ElementsMatch(t, []string{"old/c.png", "old/er/d.png"}, s.queue.Queued())
}

// unreadableIn makes a folder that nobody can look into, root included.
func unreadableIn(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, "no text \xff"), 0o777); err != nil {
		t.Skipf("this file system has no such names: %v", err)
	}
	pictureIn(t, folder, "no text \xff/a.png", 20, 10, 0)
}

// What cannot be looked into is told once, not by every look, and again when there
// is another reason; and it is not forgotten in the end.
func TestWhatCannotBeLookedIntoIsToldOnce(t *testing.T) {
	s, out := openStudio(t)
	unreadableIn(t, filepath.Join(s.cfg.folder, "sub"))
	pictureIn(t, s.cfg.folder, "sub/b.png", 20, 10, 0)
	for _, folder := range []string{".", "sub", ".", "sub"} {
		require.NoError(t, s.lookAt(t.Context(), nil, folder))
	}
	require.NoError(t, s.lookForGone(t.Context(), "."))
	assert.Equal(t, 1, strings.Count(out.String(), "thumbnails: cannot look into \"sub/no text \\xff\": its name is no UTF-8\n"), out)
	assert.Equal(t, []string{"sub/b.png"}, s.queue.Queued())
	assert.Equal(t, 1, s.book.count().unread)
	s.reportGaps()
	assert.Contains(t, out.String(), "\nnot looked into: 1\n  \"sub/no text \\xff\": its name is no UTF-8\n")

	require.NoError(t, os.RemoveAll(filepath.Join(s.cfg.folder, "sub")))
	require.NoError(t, s.lookAt(t.Context(), nil, "."))
	assert.Zero(t, s.book.count().unread)
}

func TestAFolderThatCannotBeLookedIntoIsNoSuccess(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	pictureIn(t, folder, "a.png", 20, 10, 0)
	unreadableIn(t, folder)
	p := clitest.Start(t, nil, "thumbnails", "-once", "-out", out, folder)
	assert.Equal(t, statusGivenUp, waitFor(p))
	assert.Contains(t, p.Stderr(), "thumbnails: 1 place could not be looked into\n")
	assert.Contains(t, p.Stdout(), "\nnot looked into: 1\n")
	assert.Equal(t, []string{"a.png.thumb.jpg"}, filesIn(t, out))
}

// The kernel drops events that nobody reads in time. Then everything is looked
// at.
func TestLostEventsAreMadeUpFor(t *testing.T) {
	s, out := openStudio(t)
	w, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	defer w.Close()
	pictureIn(t, s.cfg.folder, "a.png", 20, 10, 0) // watched by nobody
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { return s.follow(ctx, w) }, async.Daemon())
		w.Errors <- fsnotify.ErrEventOverflow
		eventually(t, "it was found", func() bool { return len(s.queue.Queued()) == 1 })
		return nil
	}))
	assert.Contains(t, out.String(), "events were lost")
}

// A picture that changed while it was read is looked at again, and has not
// failed.
func TestAPictureThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	s, out := openStudio(t)
	pictureIn(t, s.cfg.folder, "a.png", 20, 10, 0)
	load, reads := s.load, 0
	s.load = func(ctx context.Context, name string) (image.Image, error) {
		img, err := load(ctx, name)
		if reads++; reads == 1 {
			pictureIn(t, s.cfg.folder, "a.png", 30, 10, 0)
		}
		return img, err
	}
	s.queue.Add("a.png")
	require.NoError(t, s.consume(t.Context()))
	assert.Equal(t, 2, reads)
	assert.Zero(t, s.queue.Stats().Failed)
	assert.NotContains(t, out.String(), "of 20 by 10 pixels")
	assert.Contains(t, out.String(), "a.png: a thumbnail of 30 by 10 pixels")
}

// Backups and searches change what is not the picture. It is made again only if
// there is no thumbnail of it as it is, and then even if it was given up: it may
// have become readable.
func TestAttributesThatChangeAreAReasonToLookOnly(t *testing.T) {
	s, _ := openStudio(t)
	chmod := fsnotify.Event{Name: filepath.Join(s.cfg.folder, "a.png"), Op: fsnotify.Chmod}
	pictureIn(t, s.cfg.folder, "a.png", 20, 10, 0)
	info, err := s.folder.Lstat("a.png")
	require.NoError(t, err)
	s.book.buried["a.png"] = &page{changed: info.ModTime(), err: errors.New("no luck")}
	require.NoError(t, s.event(t.Context(), nil, chmod))
	assert.Equal(t, []string{"a.png"}, s.queue.Queued())
	require.NoError(t, s.consume(t.Context()))

	s, _ = openStudio(t)
	chmod.Name = filepath.Join(s.cfg.folder, "a.png")
	pictureIn(t, s.cfg.folder, "a.png", 20, 10, 0)
	info, err = s.folder.Lstat("a.png")
	require.NoError(t, err)
	require.NoError(t, s.gallery.put("a.png", info.ModTime(), painting(20, 10, 0)))
	require.NoError(t, s.event(t.Context(), nil, chmod))
	assert.Empty(t, s.queue.Queued())
}

// A job may have been queued, and begin, when the disk is taken away.
func TestAJobRemovesNoThumbnailWithoutTheFolder(t *testing.T) {
	s, _ := openStudio(t)
	require.NoError(t, s.gallery.put("a.png", time.Now(), painting(20, 10, 0)))
	require.NoError(t, os.Remove(s.cfg.folder))
	assert.ErrorContains(t, s.thumbnail(t.Context(), "a.png"), "is gone, or another is in its place")
	assert.Equal(t, []string{"a.png.thumb.jpg"}, filesIn(t, s.cfg.out))
}

// What is put into a folder while that is looked at is found by the look or told
// by an event.
func TestAFolderIsWatchedBeforeItIsRead(t *testing.T) {
	cfg := configFor(t)
	pictureIn(t, cfg.folder, "new/a.png", 20, 10, 0)
	out := writer(func(line []byte) {
		if strings.HasPrefix(string(line), "new/a.png: queued") {
			write(t, filepath.Join(cfg.folder, "new/late"), nil)
		}
	})
	s, err := open(cfg, cli.Streams{Out: out, Err: out})
	require.NoError(t, err)
	defer s.close()
	w, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, s.lookAt(t.Context(), w, "new"))
	for {
		select {
		case e := <-w.Events:
			if filepath.Base(e.Name) == "late" {
				return
			}
		case <-time.After(patience):
			t.Fatal("no event")
		}
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestAPictureHasChanged(t *testing.T) {
	s, _ := openStudio(t)
	pictureIn(t, s.cfg.folder, "a.png", 20, 10, 0)
	info, err := s.folder.Lstat("a.png")
	require.NoError(t, err)
	assert.False(t, s.changed("a.png", info))
	require.NoError(t, os.Chtimes(filepath.Join(s.cfg.folder, "a.png"), time.Now(), info.ModTime().Add(1)))
	assert.True(t, s.changed("a.png", info))
	info, err = s.folder.Lstat("a.png")
	require.NoError(t, err)
	pictureIn(t, s.cfg.folder, "a.png", 20, 10, 0)
	require.NoError(t, os.Chtimes(filepath.Join(s.cfg.folder, "a.png"), time.Now(), info.ModTime()))
	assert.True(t, s.changed("a.png", info), "another file of the same size and time")
	require.NoError(t, os.Remove(filepath.Join(s.cfg.folder, "a.png")))
	assert.True(t, s.changed("a.png", info))
	_, err = s.folder.Lstat("a.png")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
