package pagetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
	"github.com/ambit-go/ambit/taskqueue/page"
	taskstore "github.com/ambit-go/ambit/taskqueue/store"
)

// The pictures of docs/taskqueue.md: PICTURES=docs/pictures go test -run TestPictures makes them anew.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES is not set: it says where they go")
	}
	s := shop(t)
	b := browse(t, s, page.AllowActions(), page.Name("sqlite:tasks.db"))
	for _, p := range []struct {
		name, at, scheme string
		width, height    int64 // 0: all of it
	}{
		{"desktop", "/", "light", 1280, 0},
		{"dark", "/kind?queue=billing&type=invoice.pdf", "dark", 1280, 0},
		{"phone", "/", "light", 390, 1240},
	} {
		b.size(p.width, max(p.height, 600), p.scheme)
		b.open(p.at)
		if p.height == 0 {
			b.size(p.width, eval[int64](b, "document.documentElement.scrollHeight"), p.scheme)
		}
		shot := call(b, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: "webp", Quality: new(int64(80))})
		require.NoError(t, os.WriteFile(filepath.Join(dir, "taskqueue-"+p.name+".webp"), shot.Data, 0o644))
	}
}

// shop is a store with tasks as a shop may have them.
func shop(t *testing.T) *store {
	s := open(t)
	root, err := taskqueue.New(s)
	require.NoError(t, err)
	billing, mail := root.In("billing"), root.In("mail")
	require.NoError(t, billing.SetLimit(ctx, taskqueue.Limit{Key: "tenant-*", Concurrency: 2}))
	require.NoError(t, mail.SetLimit(ctx, taskqueue.Limit{Type: "newsletter", Rate: 20, Burst: 5}))
	var all []taskqueue.Task
	for i := range 38 {
		all = append(all, taskqueue.Task{ID: fmt.Sprint("invoice-", 1007+i), Type: "invoice.pdf", LimitKey: fmt.Sprint("tenant-", i%9), Retention: time.Hour,
			Payload: fmt.Appendf(nil, `{"order": %d, "currency": "CHF", "customer": {"id": %d, "name": "Ada Lovelace"}}`, 88120+i, 310+i)})
	}
	_, err = billing.EnqueueAll(ctx, all)
	require.NoError(t, err)
	require.NoError(t, billing.Work(ctx, taskqueue.Handlers{"invoice.pdf": func(_ context.Context, c *taskqueue.Claim) error {
		switch n := c.ID[len(c.ID)-1]; {
		case n == '4' || n == '7':
			return taskqueue.Dead(fmt.Errorf("render order %d: exchange rate CHF/EUR of 2026-11-27 is missing", 88120+int(c.Token%900)))
		case n == '1':
			return taskqueue.RetryAfter(9*time.Minute, errors.New("fonts.example: connection refused"))
		}
		return nil
	}}, taskqueue.WorkUntilEmpty()))
	all = nil
	for i := range 14 {
		all = append(all, taskqueue.Task{Type: "invoice.pdf", LimitKey: "tenant-7", Payload: []byte("{}"), Priority: uint8(i % 2)})
	}
	all = append(all, taskqueue.Task{ID: "close-november", Type: "books.close", Delay: 9 * time.Hour},
		taskqueue.Task{Type: "books.report", After: []string{"close-november", "invoice-1044"}, OnFailed: taskqueue.OnFailedWait},
		taskqueue.Task{Type: "books.archive", After: []string{"close-november"}}, taskqueue.Task{Type: "invoice.pdf", LimitKey: "tenant-2"})
	_, err = billing.EnqueueAll(ctx, all)
	require.NoError(t, err)
	all = nil
	for i := range 400 {
		all = append(all, taskqueue.Task{Type: []string{"mail.send", "mail.send", "newsletter"}[i%3], Delay: time.Duration(i/200) * time.Hour})
	}
	_, err = mail.EnqueueAll(ctx, all)
	require.NoError(t, err)
	for queue, worker := range map[string]string{"billing": "web-1:4711:1", "mail": "web-2:815:1"} {
		got, err := s.Claim(ctx, taskstore.ClaimRequest{Queue: queue, Worker: worker, Nonce: "1", Max: 5, Lease: time.Hour})
		require.NoError(t, err)
		require.NotEmpty(t, got.Tasks)
		_, err = s.Extend(ctx, taskstore.ExtendRequest{Queue: queue, Worker: worker, Lease: time.Hour,
			Refs: []taskstore.Ref{{ID: got.Tasks[0].ID, Token: got.Tasks[0].Token}}, Progress: map[string][]byte{got.Tasks[0].ID: []byte("page 12 of 40")}})
		require.NoError(t, err)
	}
	for name, schedule := range map[string]string{"nightly-books": "30 2 * * *", "digest": "CRON_TZ=Europe/Zurich 0 7 * * MON-FRI", "sweep": "@every 15m0s"} {
		_, err := s.Tick(ctx, taskqueue.Tick{Queue: "billing", Name: name, Schedule: schedule})
		require.NoError(t, err)
	}
	past(t, s)
	return s
}

// past notes sums of six hours.
func past(t *testing.T, s *store) {
	now := time.Now()
	r := rand.New(rand.NewPCG(1, 2))
	for minute := range 360 {
		at := now.Add(time.Duration(minute-359) * time.Minute)
		wave := 1 + 0.6*math.Sin(float64(minute)/45)
		for kind, of := range map[string]struct {
			queue string
			n     float64
			took  time.Duration
		}{"invoice.pdf": {"billing", 14, 700 * time.Millisecond}, "mail.send": {"mail", 60, 60 * time.Millisecond}, "newsletter": {"mail", 25, 30 * time.Millisecond}} {
			sum := new(sums.Sums)
			for range int(of.n*wave) + r.IntN(4) {
				sum.Done++
				sum.Late.Note(time.Duration(float64(40*time.Millisecond) * wave * wave * r.ExpFloat64()))
				sum.Took.Note(time.Duration(float64(of.took) * (0.4 + r.ExpFloat64())))
			}
			if kind == "invoice.pdf" && minute > 320 {
				sum.Failed = int64(1 + r.IntN(5))
			}
			require.NoError(t, sums.Add(ctx, s, of.queue, at, map[string]*sums.Sums{kind: sum}))
		}
	}
}
