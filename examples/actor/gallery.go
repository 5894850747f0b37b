package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"sync"
)

// A gallery is a web site of images that counts what it is asked for.
type gallery struct {
	mu     sync.Mutex        // guards what follows, while requests are answered
	images map[string][]byte // by path
	hits   map[string]int    // by path
}

// newGallery draws n images.
func newGallery(n int) *gallery {
	g := &gallery{images: make(map[string][]byte), hits: make(map[string]int)}
	for i := range n {
		g.images[imagePath(i)] = draw(i + 1)
	}
	return g
}

// imagePath is the path of image i: /1.png for the first.
func imagePath(i int) string { return fmt.Sprintf("/%d.png", i+1) }

// draw returns a PNG of a pattern that is another one for each i.
func draw(i int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 40+8*i, 40))
	for x := range img.Rect.Dx() {
		for y := range img.Rect.Dy() {
			img.Set(x, y, color.NRGBA{uint8(x * i), uint8(y * i), uint8(x ^ y), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // of a buffer in memory: cannot happen
	}
	return b.Bytes()
}

// ServeHTTP counts, and answers with an image.
func (g *gallery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.hits[r.URL.Path]++
	data, ok := g.images[r.URL.Path]
	g.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	_, _ = w.Write(data) // the client may have gone
}

// asked returns how many requests there were for path.
func (g *gallery) asked(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hits[path]
}
