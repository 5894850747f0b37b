package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// A slowGallery answers when it is told to.
type slowGallery struct {
	*gallery
	begun chan struct{} // receives something for each request
	open  chan struct{} // closed when requests are to be answered
}

func (g *slowGallery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.begun <- struct{}{}
	select {
	case <-g.open:
		g.gallery.ServeHTTP(w, r)
	case <-r.Context().Done():
	}
}

func newSlowGallery(n int) *slowGallery {
	return &slowGallery{newGallery(n), make(chan struct{}, 100), make(chan struct{})}
}

// served runs handler on the loopback interface until the test ends.
func served(t *testing.T, handler http.Handler) (root string, client *http.Client) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, server.Client()
}

func TestConcurrentRequestsShareOneDownload(t *testing.T) {
	const callers = 20
	site := newSlowGallery(1)
	root, client := served(t, site)
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		d := newImages(ctx, s, client)
		var asking sync.WaitGroup
		futures := make([]*async.Future[fetched], callers)
		for i := range futures {
			asking.Go(func() {
				future, err := d.request(ctx, root+"/1.png")
				assert.NoError(t, err)
				futures[i] = future
			})
		}
		asking.Wait() // all have asked, none was answered
		close(site.open)
		for _, future := range futures {
			got, err := future.Wait(ctx)
			assert.NoError(t, err)
			assert.NoError(t, got.err)
			assert.Equal(t, site.images["/1.png"], got.picture.data)
			assert.Equal(t, "png", got.picture.format)
			assert.Equal(t, 48, got.picture.width)
		}
		later, err := d.get(ctx, root+"/1.png")
		assert.NoError(t, err)
		assert.Equal(t, site.images["/1.png"], later.data)
		assert.Equal(t, 1, site.asked("/1.png"))
	})
}

func TestDifferentImagesAreDownloadedAtTheSameTime(t *testing.T) {
	const n = 5
	site := newSlowGallery(n)
	root, client := served(t, site)
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		d := newImages(ctx, s, client)
		for i := range n {
			_, err := d.request(ctx, root+imagePath(i))
			require.NoError(t, err)
		}
		for range n {
			<-site.begun
		}
		close(site.open)
		for i := range n {
			p, err := d.get(ctx, root+imagePath(i))
			assert.NoError(t, err)
			assert.Equal(t, site.images[imagePath(i)], p.data)
			assert.Equal(t, 1, site.asked(imagePath(i)))
		}
	})
}

func TestFailedDownloadIsToldToAllAndTriedAgain(t *testing.T) {
	site := newSlowGallery(1)
	image := site.images["/1.png"]
	delete(site.images, "/1.png")
	root, client := served(t, site)
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		d := newImages(ctx, s, client)
		first, err := d.request(ctx, root+"/1.png")
		require.NoError(t, err)
		second, err := d.request(ctx, root+"/1.png")
		require.NoError(t, err)
		assert.Same(t, first, second)
		close(site.open)
		got, err := first.Wait(ctx)
		require.NoError(t, err)
		require.EqualError(t, got.err, root+"/1.png: 404 Not Found")

		site.mu.Lock()
		site.images["/1.png"] = image
		site.mu.Unlock()
		p, err := d.get(ctx, root+"/1.png")
		assert.NoError(t, err)
		assert.Equal(t, image, p.data)
		assert.Equal(t, 2, site.asked("/1.png"))
	})
}

func TestCallerThatGivesUpLeavesTheDownloadToTheOthers(t *testing.T) {
	site := newSlowGallery(1)
	root, client := served(t, site)
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		d := newImages(ctx, s, client)
		hasty, giveUp := context.WithCancel(ctx)
		result := make(chan error, 1)
		go func() {
			_, err := d.get(hasty, root+"/1.png")
			result <- err
		}()
		<-site.begun
		giveUp()
		assert.ErrorIs(t, <-result, context.Canceled)
		close(site.open)
		p, err := d.get(ctx, root+"/1.png")
		assert.NoError(t, err)
		assert.Equal(t, site.images["/1.png"], p.data)
		assert.Equal(t, 1, site.asked("/1.png"))
	})
}

func TestFailureThatNobodyWaitsForFailsNobody(t *testing.T) {
	root, client := served(t, newGallery(0))
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) { // which ends well
		_, err := newImages(ctx, s, client).request(ctx, root+"/1.png")
		require.NoError(t, err)
	})
}

func TestDownloadEndsWithTheScope(t *testing.T) {
	site := newSlowGallery(1)
	root, client := served(t, site)
	stopped, stop := context.WithCancel(t.Context())
	_ = async.Scope(stopped, func(ctx context.Context) error {
		d := newImages(ctx, scheduler.New(scheduler.Goroutines()), client)
		if _, err := d.request(ctx, root+"/1.png"); err != nil {
			return err
		}
		<-site.begun
		stop()
		_, err := d.get(t.Context(), root+"/1.png")
		assert.Error(t, err)
		return nil
	})
	assert.Zero(t, site.asked("/1.png"), "the answer was not waited for")
}

func TestWhatIsNoImageIsAnError(t *testing.T) {
	bodies := map[string]string{
		"/text":  "not a picture",
		"/empty": "",
		"/huge":  strings.Repeat("x", maxImage+1),
	}
	root, client := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(bodies[r.URL.Path]))
	}))
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		d := newImages(ctx, s, client)
		for path, want := range map[string]string{
			"/text":  "image: unknown format",
			"/empty": "image: unknown format",
			"/huge":  "more than 16777216 bytes",
		} {
			_, err := d.get(ctx, root+path)
			assert.ErrorContains(t, err, want, path)
		}
		_, err := d.get(ctx, "nowhere")
		assert.ErrorContains(t, err, "unsupported protocol scheme")
	})
}
