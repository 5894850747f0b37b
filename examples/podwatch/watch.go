//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// A watchdog looks at a pod. Its looks do not overlap, which package async sees to.
type watchdog struct {
	client   *http.Client
	url      string
	tolerate int // looks in a row without an answer that pass

	first      *pod // as it was at the first look
	unanswered int  // looks in a row that have brought no answer
}

// A pod is what matters of one.
type pod struct {
	Metadata struct {
		UID               string
		DeletionTimestamp string
	}
	Status struct {
		Phase, Reason, Message string
		ContainerStatuses      []struct {
			Name         string
			RestartCount int
		}
	}
}

// errNoAnswer says nothing about the pod: the server is away, or busy.
var errNoAnswer = errors.New("no answer about the pod")

// look is the check of the watchdog. An answer that says that the pod is lost counts at once; no answer counts when
// there was none for several looks: a server that restarts is no reason to end a command that runs well.
func (w *watchdog) look(ctx context.Context) error {
	now, err := w.get(ctx)
	if errors.Is(err, errNoAnswer) {
		if w.unanswered++; w.unanswered <= w.tolerate && w.first != nil {
			return nil
		}
		return err
	}
	w.unanswered = 0
	if err != nil {
		return err
	}
	if w.first == nil {
		w.first = now
	}
	return now.fault(w.first)
}

// fault says in which way the pod is no longer the one that it was.
func (p *pod) fault(first *pod) error {
	switch {
	case p.Metadata.UID != first.Metadata.UID:
		return errors.New("the pod is another one of the same name")
	case p.Status.Phase != "Running":
		return fmt.Errorf("the pod is %q: %.200q", p.Status.Phase+" "+p.Status.Reason, p.Status.Message)
	case p.Metadata.DeletionTimestamp != "":
		return errors.New("the pod is being deleted")
	}
	for i, c := range p.Status.ContainerStatuses {
		if i < len(first.Status.ContainerStatuses) && c.RestartCount != first.Status.ContainerStatuses[i].RestartCount {
			return fmt.Errorf("container %q of the pod was started anew", c.Name)
		}
	}
	return nil
}

// get asks the server for the pod.
func (w *watchdog) get(ctx context.Context) (*pod, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer answer.Body.Close()
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound:
		return nil, errors.New("the pod is gone")
	case code >= 500, code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: %q", errNoAnswer, answer.Status)
	case code != http.StatusOK:
		return nil, fmt.Errorf("the server does not show the pod: %q", answer.Status)
	}
	p := new(pod)
	if err := json.NewDecoder(io.LimitReader(answer.Body, 4<<20)).Decode(p); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return p, nil
}
