package main

import (
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func galleryIn(t *testing.T, folder string) *gallery {
	t.Helper()
	g, err := openGallery(folder, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(g.close)
	return g
}

func TestPutMakesAThumbnailWithTheTimeOfItsPicture(t *testing.T) {
	folder := t.TempDir()
	g := galleryIn(t, folder)
	changed := time.Date(2020, 2, 29, 12, 0, 0, 123456789, time.UTC)
	require.NoError(t, g.put("deep/er/a.png", changed, painting(20, 10, 0)))
	assert.Equal(t, []string{"deep/er/a.png.thumb.jpg"}, filesIn(t, folder))
	assert.Equal(t, image.Pt(20, 10), decoded(t, filepath.Join(folder, "deep/er/a.png.thumb.jpg")).Bounds().Size())
	assert.True(t, g.has("deep/er/a.png", changed))
	assert.False(t, g.has("deep/er/a.png", changed.Add(time.Nanosecond)))
	assert.False(t, g.has("deep/er/b.png", changed))
}

// decoded returns a whole thumbnail.
func decoded(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	img, err := jpeg.Decode(f)
	require.NoError(t, err, file)
	return img
}

// A time of which only the seconds were kept is that time.
func TestACoarseFileSystemDoesNotMakeThumbnailsStale(t *testing.T) {
	folder := t.TempDir()
	g := galleryIn(t, folder)
	changed := time.Date(2020, 2, 29, 12, 0, 7, 123456789, time.UTC)
	for _, kept := range []time.Duration{time.Microsecond, time.Second, 2 * time.Second} {
		require.NoError(t, g.put("a.png", changed.Truncate(kept), painting(20, 10, 0)))
		assert.True(t, g.has("a.png", changed), kept)
		assert.False(t, g.has("a.png", changed.Add(2*time.Second)), kept)
	}
}

// Half of the thumbnail is written when it goes wrong. The old one stays.
func TestPutThatFailsLeavesTheOldThumbnailAndNothingElse(t *testing.T) {
	folder := t.TempDir()
	g := galleryIn(t, folder)
	changed := time.Unix(1, 0)
	require.NoError(t, g.put("a.png", changed, painting(20, 10, 0)))
	require.Panics(t, func() { _ = g.put("a.png", changed.Add(1), &failing{painting(400, 400, 0)}) })
	require.Error(t, g.put("a.png", changed.Add(1), painting(0x10000, 1, 0)), "too large for a jpeg")
	assert.Equal(t, []string{"a.png.thumb.jpg"}, filesIn(t, folder))
	assert.True(t, g.has("a.png", changed))
	decoded(t, filepath.Join(folder, "a.png.thumb.jpg"))
}

// failing is a picture whose second half cannot be read.
type failing struct{ image.PalettedImage }

func (f *failing) At(x, y int) color.Color {
	if y >= f.Bounds().Dy()/2 {
		panic("no more")
	}
	return f.PalettedImage.At(x, y)
}

func TestOnlyOneProgramWorksInAGallery(t *testing.T) {
	folder, pictures := t.TempDir(), t.TempDir()
	g, err := openGallery(folder, pictures)
	require.NoError(t, err)
	_, err = openGallery(folder, pictures)
	assert.ErrorContains(t, err, "another program works there; name another folder with -out")
	g.close()
	g, err = openGallery(folder, pictures)
	require.NoError(t, err)
	g.close()
}

// It would find that all pictures of the first folder are gone.
func TestAGalleryIsForOneFolder(t *testing.T) {
	all := t.TempDir()
	open := func(folder, pictures string) error {
		g, err := openGallery(filepath.Join(all, folder), filepath.Join(all, pictures))
		if err == nil {
			g.close()
		}
		return err
	}
	require.NoError(t, os.MkdirAll(filepath.Join(all, "a/out"), 0o777))
	assert.NoError(t, open("a/out", "a"))
	assert.ErrorContains(t, open("a/out", "b"), "it holds the thumbnails of ..; name another folder with -out")
	require.NoError(t, os.Rename(filepath.Join(all, "a"), filepath.Join(all, "c")))
	assert.NoError(t, open("c/out", "c"), "moved together")
}

func TestOpeningAGalleryRemovesTemporaryFilesOnly(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.jpg", ".b.jpg", "a.tmp", "a.jpg.thumb.jpg", ".a.jpg.thumb.jpg.tmp", "deep/.b.png.thumb.jpg.tmp"} {
		write(t, filepath.Join(folder, name), nil)
	}
	galleryIn(t, folder)
	assert.Equal(t, []string{".b.jpg", "a.jpg", "a.jpg.thumb.jpg", "a.tmp"}, filesIn(t, folder))
}

func TestRemovingWhatIsNotThereIsNoError(t *testing.T) {
	g := galleryIn(t, t.TempDir())
	require.NoError(t, g.put("a.png", time.Now(), painting(20, 10, 0)))
	there, err := g.remove("a.png")
	assert.True(t, there)
	assert.NoError(t, err)
	there, err = g.remove("a.png")
	assert.False(t, there)
	assert.NoError(t, err)
}

// A name may be as long as the file system allows, and then has no thumbnail.
func TestANameThatIsTooLongForAThumbnail(t *testing.T) {
	folder := t.TempDir()
	g := galleryIn(t, folder)
	for _, length := range []int{242, 255} { // room for the thumbnail, but not for the temporary file, or for neither
		name := strings.Repeat("y", length-len(".png")) + ".png"
		assert.EqualError(t, g.put(name, time.Now(), painting(20, 10, 0)), "its name leaves no room for .thumb.jpg.tmp behind it")
		there, err := g.remove(name)
		assert.False(t, there)
		assert.NoError(t, err)
	}
	assert.Empty(t, filesIn(t, folder))
}

// Others may tidy up among the thumbnails meanwhile, or lock a folder.
func TestAFolderThatCannotBeReadEndsNoLookAtTheOthers(t *testing.T) {
	folder := t.TempDir()
	g := galleryIn(t, folder)
	for _, name := range []string{"a/a.png", "b/b.png", "c/c.png", "d/d.png"} {
		require.NoError(t, g.put(name, time.Now(), painting(20, 10, 0)))
	}
	var found, failed []string
	require.NoError(t, g.pictures(t.Context(), ".", func(name string, _ error) { failed = append(failed, name) }, func(name string) {
		if found = append(found, name); name == "a/a.png" { // the walk knows of b and c
			require.NoError(t, os.RemoveAll(filepath.Join(folder, "b")))
			require.NoError(t, os.RemoveAll(filepath.Join(folder, "c")))
			write(t, filepath.Join(folder, "c"), nil)
		}
	}))
	assert.Equal(t, []string{"a/a.png", "d/d.png"}, found)
	assert.Equal(t, []string{"c"}, failed)
}

// A symbolic link in the folder of the thumbnails does not lead out of it.
func TestAGalleryIsNotLeft(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(folder, "deep")))
	g := galleryIn(t, folder)
	assert.Error(t, g.put("deep/a.png", time.Now(), painting(20, 10, 0)))
	assert.Empty(t, filesIn(t, elsewhere))
}

func TestCauseIsWithoutTheName(t *testing.T) {
	_, err := os.Stat(filepath.Join(t.TempDir(), "missing"))
	assert.EqualError(t, cause(err), "no such file or directory")
	err = os.Rename(filepath.Join(t.TempDir(), "missing"), "another")
	assert.EqualError(t, cause(err), "no such file or directory")
	err = errors.New("another")
	assert.Equal(t, err, cause(err))
	assert.NoError(t, cause(nil))
}
