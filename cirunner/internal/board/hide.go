package board

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/mask"
)

// Hide says which texts are not to be seen in what is known of a job from now on, instead of those before. Lines
// are written by one who has hidden them.
func (b *Board) Hide(i int, secrets []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hidden[i] = slices.Concat(secrets, b.common)
}

// hideLocked hides secrets in the texts that have changed.
func (b *Board) hideLocked(i int, before Job) {
	j, secrets := &b.jobs[i], b.hidden[i]
	if secrets == nil {
		secrets = b.common
	}
	if len(secrets) == 0 {
		return
	}
	for _, text := range []struct {
		now    *string
		before string
	}{{&j.Phase, before.Phase}, {&j.Why, before.Why}, {&j.Last, before.Last}, {&j.Coverage, before.Coverage}} {
		if *text.now != text.before {
			*text.now = mask.Text(*text.now, secrets)
		}
	}
}
