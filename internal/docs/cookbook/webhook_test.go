package cookbook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAWebhookIsAnsweredInTime(t *testing.T) {
	errBad := errors.New("bad event")
	tests := []struct {
		name   string
		takes  time.Duration
		err    error
		status int
		joined error // what the owner's scope returns
	}{
		{"at once", time.Second, nil, http.StatusOK, nil},
		{"fails", time.Second, errBad, http.StatusInternalServerError, nil},
		{"late", time.Minute, nil, http.StatusAccepted, nil},
		{"fails late", time.Minute, errBad, http.StatusAccepted, errBad},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				created := ""
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					h := Webhooks(ctx, func(ctx context.Context, event []byte) error {
						if err := async.Sleep(ctx, test.takes); err != nil {
							return err
						}
						created = string(event)
						return test.err
					})
					request, gone := context.WithCancel(ctx)
					w := httptest.NewRecorder()
					h(w, httptest.NewRequestWithContext(request, http.MethodPost, "/", strings.NewReader("push")))
					gone() // as net/http does when the handler has returned
					require.Equal(t, test.status, w.Code)
					return nil
				})
				require.ErrorIs(t, err, test.joined)
				require.Equal(t, "push", created)
			})
		})
	}
}
