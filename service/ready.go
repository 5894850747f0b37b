package service

import "context"

// Ready says that the service which ctx belongs to serves: [Run] starts the next one.
//
//	listen(ctx)
//	service.Ready(ctx)
//
// # Details
//
// ctx is the one that Run of the service was called with, or any derived from it, also
// that of a task started there. To call Ready again, or where ctx belongs to no service,
// as in a test of its Run, does nothing. It does not block, and any number of goroutines
// may call it.
func Ready(ctx context.Context) {
	if m := memberOf(ctx); m != nil {
		m.markReady()
	}
}

// IsReady reports whether all services of the [Run] that ctx belongs to are ready and
// none has been told to drain: a health handler asks it.
//
//	if !service.IsReady(r.Context()) {
//		http.Error(w, "not ready", http.StatusServiceUnavailable)
//	}
//
// # Details
//
// A service is ready as long as its Run lasts, with a Startup from [Ready] on; one that
// MayEnd also when it has ended well. If that Run was called in a service of another,
// that one's services are asked, too. IsReady is false where ctx belongs to no service.
// The ctx of a request that a server of [HTTP] handles belongs to that.
func IsReady(ctx context.Context) bool {
	for m := memberOf(ctx); m != nil; m = m.set.parent {
		if !m.set.isReady() {
			return false
		}
	}
	return memberOf(ctx) != nil
}

// isReady reports whether all members of s are ready and s is not draining.
func (s *set) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if !m.state.ready && !m.doneWell(m.state) {
			return false
		}
	}
	return !s.draining
}

// Draining returns a channel that is closed when level 1 of the [Run] that ctx belongs to
// begins, or that of a Run around it.
//
//	<-service.Draining(ctx)
//	return unsubscribe(ctx) // what was taken goes on with ctx
//
// # Details
//
// The channel is for loops that take from somewhere and are to take no more, while ctx
// lives on for what they have taken. A loop may return then: it is stopped. Where ctx
// belongs to no service the channel is ctx.Done().
func Draining(ctx context.Context) <-chan struct{} {
	if m := memberOf(ctx); m != nil {
		return m.set.taking.Done()
	}
	return ctx.Done()
}
