package kvqueue

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The scope of a Take ends, or its items are settled, before the session knows of it.
func TestASessionKeepsNothingOfATakeThatIsOver(t *testing.T) {
	l := new(session)
	l.look(&taken{over: true, left: 1})
	l.look(&taken{left: 0})
	assert.Empty(t, l.takes)
	lasts := &taken{left: 1}
	l.look(lasts)
	assert.Len(t, l.takes, 1)
	l.unlook(lasts)
	assert.Empty(t, l.takes)
}
