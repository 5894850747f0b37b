package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // what can be decoded
	_ "image/jpeg"
	_ "image/png"
	"io"
	"math"
	"path"
	"strings"

	_ "golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
)

// longestSide is that of a picture, in pixels: the most that a jpeg may have.
// Without it a picture of little area and great length would cost much memory
// to scale.
const longestSide = 65535

const million = 1_000_000

// isPicture reports whether a file of this name is taken for a picture. Hidden
// ones are what other programs have not finished, and thumbnails are none.
func isPicture(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasSuffix(base, thumbnailSuffix) {
		return false
	}
	switch strings.ToLower(path.Ext(base)) {
	case ".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff":
		return true
	}
	return false
}

// shrink reads a picture and returns a copy whose longer side is at most size.
// One of more than the given number of pixels is refused by what its header
// says, before there is memory for it. shrink ends soon after ctx does.
func shrink(ctx context.Context, file io.ReaderAt, pixels, size int) (image.Image, error) {
	src, err := decode(ctx, file, pixels)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return scale(src, size), nil
}

func decode(ctx context.Context, file io.ReaderAt, pixels int) (image.Image, error) {
	header, format, err := image.DecodeConfig(newSource(ctx, file))
	switch w, h := header.Width, header.Height; {
	case errors.Is(err, image.ErrFormat):
		return nil, errors.New("no picture of a known format")
	case err != nil:
		return nil, fmt.Errorf("cannot be decoded: %w", err)
	case w < 1 || h < 1:
		return nil, fmt.Errorf("empty: %d by %d pixels", w, h)
	case w > longestSide || h > longestSide || w*h > pixels:
		return nil, fmt.Errorf("too large: %d by %d pixels, but -megapixels allows %d million, and %d a side", w, h, pixels/million, longestSide)
	}
	img, _, err := image.Decode(newSource(ctx, file))
	if err != nil {
		return nil, fmt.Errorf("broken %s: %w", format, err)
	}
	return img, nil
}

// scale returns a copy of src whose longer side is at most size, on white.
func scale(src image.Image, size int) image.Image {
	b := src.Bounds()
	w, h := fit(b.Dx(), b.Dy(), size)
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(dst, dst.Bounds(), image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(dst, dst.Bounds(), src, b, draw.Over, nil)
	return dst
}

// fit returns the sides of a thumbnail of a picture. It keeps their ratio, but
// for a side that would vanish, and enlarges nothing.
func fit(w, h, size int) (int, int) {
	longer := max(w, h)
	if longer <= size {
		return w, h
	}
	return max(1, (w*size+longer/2)/longer), max(1, (h*size+longer/2)/longer)
}

// A source is what a decoder reads a picture from, once. Package image passes it
// on as it is because it has Peek, and not in a buffer that hides ReadAt: without
// that the decoder of tiff keeps in memory whatever is before the place where the
// file says that its header is.
type source struct {
	*bufio.Reader
	io.ReaderAt
}

func newSource(ctx context.Context, file io.ReaderAt) source {
	file = stopping{ctx, file}
	return source{bufio.NewReader(io.NewSectionReader(file, 0, math.MaxInt64)), file}
}

// stopping is a file whose reads fail once ctx is done: decoders know of no
// context, but they all read.
type stopping struct {
	ctx  context.Context
	file io.ReaderAt
}

func (s stopping) ReadAt(p []byte, off int64) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.file.ReadAt(p, off)
}
