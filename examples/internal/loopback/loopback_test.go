package loopback

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

func TestServerLastsAsLongAsTheScopeHasOtherWork(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	var site string
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) (err error) {
		site, err = Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/hang" {
				_, _ = io.WriteString(w, "hello")
				return
			}
			defer close(gone)
			close(asked)
			<-r.Context().Done()
		}))
		require.NoError(t, err)
		resp, err := client.Get(site + "/")
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		assert.NoError(t, err)
		assert.Equal(t, "hello", string(body))

		async.Go(context.WithoutCancel(ctx), func(context.Context) error {
			<-asked
			return nil
		})
		go func() { _, _ = client.Get(site + "/hang") }()
		return nil
	}))
	<-gone // a request that nobody answers keeps no scope
	_, err := client.Get(site + "/")
	assert.ErrorContains(t, err, "connection refused")
}
