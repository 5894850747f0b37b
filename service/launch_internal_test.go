package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// There is news of a job whose start has panicked, however late that is looked at: the panic is raised, not another one.
func TestThereIsNewsOfAJobWhoseStartHasPanicked(t *testing.T) {
	j := &job{handed: make(chan struct{}), bad: "planted"}
	close(j.handed)
	assert.True(t, closed(j.news()))
	assert.PanicsWithValue(t, "planted", func() { j.settled() })
}

// A pause ends when the turn to stop has just come: Run is not called, and no line says that it is.
func TestAServiceThatIsNotStartedAgainIsNotLoggedAsThat(t *testing.T) {
	var log bytes.Buffer
	s := newSet(t.Context(), []Service{{Run: func(context.Context) error { t.Error("it was run"); return nil }}}, []Option{Log(slog.New(slog.NewTextHandler(&log, nil)))})
	m := s.members[0]
	m.state = state{called: true, since: time.Now(), failed: errors.New("planted")}
	require.NoError(t, m.call(t.Context()))
	s.endLog()
	assert.Empty(t, log.String())
	assert.Error(t, m.state.failed, "it is told when the task has ended")
}

// A task is handed on just after the supervisor has looked, and before it sleeps: that is news.
func TestATaskThatIsHandedOnBetweenTwoLooksIsNews(t *testing.T) {
	j := &job{handed: make(chan struct{})}
	require.False(t, j.settled())
	done := make(chan struct{})
	j.future = async.Start(t.Context(), func(context.Context) error { <-done; return nil })
	close(j.handed)
	assert.True(t, closed(j.news()), "nobody would wake the supervisor")
	require.False(t, j.settled())
	assert.False(t, closed(j.news()))
	close(done)
	<-j.news()
	assert.True(t, j.settled())
}
