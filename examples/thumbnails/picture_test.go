package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

func TestFitKeepsTheRatioAndEnlargesNothing(t *testing.T) {
	for _, test := range []struct{ w, h, wantW, wantH int }{
		{1600, 1200, 160, 120},
		{1200, 1600, 120, 160},
		{160, 160, 160, 160},
		{161, 160, 160, 159},
		{30, 20, 30, 20},
		{1, 1, 1, 1},
		{10000, 1, 160, 1},
		{1, 10000, 1, 160},
	} {
		w, h := fit(test.w, test.h, 160)
		assert.Equal(t, [2]int{test.wantW, test.wantH}, [2]int{w, h}, "%d by %d", test.w, test.h)
	}
}

func TestPicturesAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a.jpg": true, "a.JPEG": true, "deep/er/a.png": true, "a.gif": true, "a.webp": true, "a.bmp": true, "a.tif": true, "a.tiff": true,
		"a.txt": false, "jpg": false, ".a.jpg": false, "deep/.a.jpg": false, "a.jpg.thumb.jpg": false, "a.jpg.tmp": false,
	} {
		assert.Equal(t, want, isPicture(name), name)
	}
}

// A picture of each format, 30 by 20 pixels but for the last.
func pictures(t *testing.T) map[string][]byte {
	all := make(map[string][]byte)
	for _, name := range []string{"a.jpg", "a.png", "a.gif"} {
		data, err := encode(name, 30, 20, 1)
		require.NoError(t, err)
		all[name] = data
	}
	var b bytes.Buffer
	require.NoError(t, bmp.Encode(&b, painting(30, 20, 1)))
	all["a.bmp"] = bytes.Clone(b.Bytes())
	b.Reset()
	require.NoError(t, tiff.Encode(&b, painting(30, 20, 1), nil))
	all["a.tiff"] = bytes.Clone(b.Bytes())
	webp, err := base64.StdEncoding.DecodeString("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=")
	require.NoError(t, err)
	all["a.webp"] = webp
	return all
}

func TestEveryFormatIsDecoded(t *testing.T) {
	for name, data := range pictures(t) {
		img, err := shrink(t.Context(), bytes.NewReader(data), million, 15)
		require.NoError(t, err, name)
		if name == "a.webp" {
			assert.Equal(t, image.Pt(1, 1), img.Bounds().Size())
		} else {
			assert.Equal(t, image.Pt(15, 10), img.Bounds().Size(), name)
		}
	}
}

// What has been written in part is an error, of whatever length, and no panic:
// so it is tried again.
func TestAPartOfAPictureIsAnError(t *testing.T) {
	for name, data := range pictures(t) {
		if name == "a.webp" || name == "a.tiff" || name == "a.gif" {
			data = data[:len(data)/2] // their last bytes may be missed by nobody
		}
		for n := range len(data) - 2 {
			_, err := shrink(t.Context(), bytes.NewReader(data[:n]), million, 15)
			assert.Error(t, err, "%s, %d of %d bytes", name, n, len(data))
		}
	}
}

// bomb returns a png of a few bytes that says it is very large.
func bomb(w, h uint32) []byte {
	chunk := []byte("IHDR")
	chunk = binary.BigEndian.AppendUint32(chunk, w)
	chunk = binary.BigEndian.AppendUint32(chunk, h)
	chunk = append(chunk, 8, 6, 0, 0, 0)
	data := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d")
	data = append(data, chunk...)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(chunk))
}

// It would need 6 GB. That it is refused as too large, and not because nothing
// follows, says that its header was enough.
func TestAHugePictureIsRefusedByItsHeader(t *testing.T) {
	for _, side := range [][2]uint32{{40000, 40000}, {1, 1_000_000}, {1_000_000, 1}} {
		_, err := shrink(t.Context(), bytes.NewReader(bomb(side[0], side[1])), 50*million, 160)
		assert.ErrorContains(t, err, "too large: ")
		assert.ErrorContains(t, err, "-megapixels allows 50 million, and 65535 a side")
	}
}

func TestTransparentIsWhite(t *testing.T) {
	img := scale(image.NewNRGBA(image.Rect(0, 0, 10, 10)), 5)
	assert.Equal(t, color.RGBAModel.Convert(color.White), img.At(2, 2))
}

// A decoder that is in the middle of a long file ends when it reads on.
func TestDecodingEndsWithItsContext(t *testing.T) {
	var data bytes.Buffer
	require.NoError(t, bmp.Encode(&data, painting(300, 200, 1)))
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	file := &counting{file: bytes.NewReader(data.Bytes()), then: func(reads int) {
		if reads == 3 {
			stop(enough)
		}
	}}
	_, err := shrink(ctx, file, million, 15)
	assert.ErrorIs(t, err, enough)
	assert.Equal(t, 3, file.reads)
	assert.Less(t, file.read, data.Len())
}

// counting counts what is read, and calls then after each read.
type counting struct {
	file        io.ReaderAt
	then        func(reads int)
	reads, read int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.file.ReadAt(p, off)
	c.reads++
	c.read += n
	if c.then != nil {
		c.then(c.reads)
	}
	return n, err
}

// zeros is a file of zeros after its first bytes, of any length, as a sparse one
// is that takes no place on the disk.
type zeros struct{ first []byte }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(z.first)) {
		copy(p, z.first[off:])
	}
	return len(p), nil
}

// The directory of a tiff is where the file says it is: what is before that is
// not read.
func TestATiffWithItsHeaderFarAwayIsNotReadUpToThere(t *testing.T) {
	file := &counting{file: zeros{[]byte("II*\x00\x00\x00\x00\x70")}}
	_, err := shrink(t.Context(), file, 50*million, 160)
	assert.ErrorContains(t, err, "cannot be decoded: tiff: ")
	assert.Less(t, file.read, million)
}

// One pixel may claim to be gigabytes long.
func TestATiffIsNotReadBeyondWhatItsPixelsNeed(t *testing.T) {
	tags := [][2]uint32{{256, 1}, {257, 1}, {258, 8}, {259, 1}, {262, 1}, {273, 200}, {277, 1}, {278, 1}, {279, 1 << 30}}
	data := []byte{'I', 'I', '*', 0, 8, 0, 0, 0, byte(len(tags)), 0}
	for _, tag := range tags {
		data = binary.LittleEndian.AppendUint16(data, uint16(tag[0]))
		data = binary.LittleEndian.AppendUint16(data, 4) // a number of 32 bits,
		data = binary.LittleEndian.AppendUint32(data, 1) // only one
		data = binary.LittleEndian.AppendUint32(data, tag[1])
	}
	file := &counting{file: zeros{data}}
	_, err := shrink(t.Context(), file, million, 160)
	assert.ErrorContains(t, err, "broken tiff: ")
	assert.Less(t, file.read, million)
}
