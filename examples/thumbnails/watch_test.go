package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	hung := time.AfterFunc(patience, func() {
		if hanging, err := os.FindProcess(p.Pid()); err == nil {
			_ = hanging.Kill()
		}
	})
	defer hung.Stop()
	return p.Wait()
}
