package cookbook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Pod is what the server says about a pod.
type Pod struct {
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

// WaitForRunning asks url about a pod until it runs, for at most limit. A pod
// that has ended or is not known ends the wait at once; a server that cannot
// be reached or is busy is asked again. The error tells the last phase seen,
// as a *async.PollError[Pod].
func WaitForRunning(ctx context.Context, client *http.Client, url string, interval, limit time.Duration) (Pod, error) {
	var seen Pod
	return async.Poll(ctx, async.Jitter(0.1, async.Every(interval)), func(ctx context.Context) (Pod, bool, error) {
		err := getPod(ctx, client, url, &seen)
		switch {
		case err != nil:
			return seen, false, err
		case seen.Phase == "Failed", seen.Phase == "Succeeded":
			return seen, false, fmt.Errorf("pod has ended: %s %s", seen.Phase, seen.Reason)
		default:
			return seen, seen.Phase == "Running", nil
		}
	}, async.Timeout(limit), async.Grace(time.Second)).Await(ctx, 0)
}

// getPod asks once. Its error is an Again if it may be another one next time.
func getPod(ctx context.Context, client *http.Client, url string, pod *Pod) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return async.Again(err)
	}
	defer func() { _ = response.Body.Close() }()
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		return json.NewDecoder(response.Body).Decode(pod)
	case status == http.StatusTooManyRequests, status >= 500:
		err := fmt.Errorf("get pod: %s", response.Status)
		if seconds, bad := strconv.Atoi(response.Header.Get("Retry-After")); bad == nil {
			return async.AgainAfter(time.Duration(seconds)*time.Second, err)
		}
		return async.Again(err)
	default:
		return fmt.Errorf("get pod: %s", response.Status)
	}
}
