//go:build unix

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"thumbnails": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// drawing returns a picture of noise, so that it takes a while, as a file.
func drawing(t *testing.T, width, height int) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range picture.Pix {
		picture.Pix[i] = byte(rand.Uint32())
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, picture))
	return b.Bytes()
}

// sizeOf returns the size of a picture that is whole.
func sizeOf(t *testing.T, path string) image.Point {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	picture, err := png.Decode(file)
	require.NoError(t, err, path)
	return picture.Bounds().Size()
}

// The program watches a folder in which pictures come, change, are half written for a
// time, and go.
func TestThumbnailsFollowTheirPictures(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	write := func(name string, data []byte) { require.NoError(t, os.WriteFile(path(name), data, 0o600)) }
	p := clitest.Start(t, nil, "thumbnails", "-every", "20ms", "-size", "50", folder)
	write("a.png", drawing(t, 200, 100))
	p.WaitFor(`"a.png": done`)
	assert.Equal(t, image.Pt(50, 25), sizeOf(t, path("thumbnails/a.png.png")))

	write("a.png", drawing(t, 10, 30))
	p.WaitFor(`"a.png": done`)
	clitest.Eventually(t, "the new one", func() bool { return sizeOf(t, path("thumbnails/a.png.png")) == image.Pt(10, 30) })

	whole := drawing(t, 60, 60)
	write("b.png", whole[:len(whole)/2])
	p.WaitFor(`"b.png": given up after 5 attempts: cannot be decoded: `)
	write("b.png", whole) // the change gives it all its attempts again
	p.WaitFor(`"b.png": done`)

	require.NoError(t, os.Remove(path("a.png")))
	clitest.Eventually(t, "no thumbnail", func() bool { _, err := os.Stat(path("thumbnails/a.png.png")); return os.IsNotExist(err) })
	require.NoError(t, os.Rename(folder, folder+" is gone"))
	assert.Equal(t, 1, p.Wait(), "a folder that is gone is no folder of deleted pictures")
	_, err := os.Stat(filepath.Join(folder+" is gone", "thumbnails", "b.png.png"))
	assert.NoError(t, err)
}

// The program is stopped again and again, at some time, by a signal or by KILL. A file under a
// thumbnail's name is whole each time, what is not there is listed after a signal, and in the end
// there is a thumbnail of everything and nothing else.
func TestNoHalfWrittenThumbnailWhateverStopsTheProgram(t *testing.T) {
	const pictures = 6
	folder := t.TempDir()
	thumbnails := filepath.Join(folder, "thumbnails")
	for round, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		for i := range pictures {
			require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(i, ".png")), drawing(t, 100, 80+round), 0o600))
		}
		p := clitest.Start(t, nil, "thumbnails", "-size", "1000", "-workers", "2", folder)
		for range rand.IntN(pictures) + 1 {
			p.WaitFor(": done")
		}
		p.Signal(sig)
		assert.Equal(t, 128+int(sig), p.Wait(), p.Stderr())
		for i := range pictures {
			name := fmt.Sprint(i, ".png")
			_, unfinished, _ := strings.Cut(p.Stdout(), "unfinished: ")
			picture, err := os.Stat(filepath.Join(folder, name))
			require.NoError(t, err)
			thumbnail, err := os.Stat(filepath.Join(thumbnails, name+suffix))
			made := err == nil && thumbnail.ModTime().Equal(picture.ModTime())
			if sig != syscall.SIGKILL {
				assert.NotEqual(t, made, strings.Contains(unfinished, name), p.Stdout())
			}
			if made {
				assert.Equal(t, image.Pt(100, 80+round), sizeOf(t, filepath.Join(thumbnails, name+suffix)))
			} else if err == nil {
				sizeOf(t, filepath.Join(thumbnails, name+suffix)) // of the round before
			}
		}
	}
	p := clitest.Start(t, nil, "thumbnails", "-once", "-size", "1000", folder)
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	left, err := os.ReadDir(thumbnails)
	require.NoError(t, err)
	assert.Len(t, left, pictures, "what was left by a kill is gone")
}
