package main

import (
	"context"
	"errors"
	"image"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/clitest"
)

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
