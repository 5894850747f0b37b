package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/png" // what image.DecodeConfig is to know
	"io"
	"net/http"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// maxImage is how much is read of an image, in bytes.
const maxImage = 16 << 20

// images is an actor that downloads images, each once, however many ask for it
// at the same time or later. Its state is what it has of each URL: a future,
// of a download under way or of one that is done.
//
// Only the look-up is done by the actor. The download is a task of its own, so
// the actor is free meanwhile, and callers wait where they are.
type images struct {
	*actor[map[string]*async.Future[fetched]]
	scope  context.Context // that downloads belong to, not to who asked first
	client *http.Client
}

// A picture is an image as it came.
type picture struct {
	data          []byte
	format        string
	width, height int
}

// fetched is a picture, or why there is none. The error is part of the value:
// as the error of a future it would fail the scope if all who asked have gone.
type fetched struct {
	picture picture
	err     error
}

// newImages returns an actor that ends with the scope of ctx.
func newImages(ctx context.Context, s *scheduler.Scheduler, client *http.Client) *images {
	return &images{newActor(ctx, s, "images", make(map[string]*async.Future[fetched])), ctx, client}
}

// get returns the image at url. It waits until ctx ends at most; the download
// goes on then, for the others. Nobody may change the data.
func (d *images) get(ctx context.Context, url string) (picture, error) {
	future, err := d.request(ctx, url)
	if err != nil {
		return picture{}, err
	}
	got, err := future.Wait(ctx) // Await would abort the download for all
	if err != nil {
		return picture{}, err
	}
	return got.picture, got.err
}

// request returns the future of url, and starts the download if there is none.
func (d *images) request(ctx context.Context, url string) (*async.Future[fetched], error) {
	return ask(ctx, d.actor, func(_ context.Context, known *map[string]*async.Future[fetched]) (*async.Future[fetched], error) {
		future, ok := (*known)[url]
		if !ok {
			future = async.Execute(d.scope, func(ctx context.Context) (fetched, error) {
				return d.fetch(ctx, url), nil
			}, async.Name(url))
			(*known)[url] = future
		}
		return future, nil
	})
}

// fetch downloads url. A failure is forgotten before anybody is told of it, so
// whoever asks again starts another download.
func (d *images) fetch(ctx context.Context, url string) fetched {
	p, err := download(ctx, d.client, url)
	if err != nil {
		_ = d.tell(func(known *map[string]*async.Future[fetched]) { delete(*known, url) }) // or d has ended
	}
	return fetched{p, err}
}

func download(ctx context.Context, client *http.Client, url string) (picture, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return picture{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return picture{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return picture{}, fmt.Errorf("%s: %s", url, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxImage+1))
	if err != nil {
		return picture{}, fmt.Errorf("%s: %w", url, err)
	}
	if len(data) > maxImage {
		return picture{}, fmt.Errorf("%s: more than %d bytes", url, maxImage)
	}
	head, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("%s: %w", url, err)
	}
	return picture{data, format, head.Width, head.Height}, nil
}
