package clitest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSignIsReadyAtAWholeLine(t *testing.T) {
	s := NewSign()
	fmt.Fprint(s, "pid 12\nrea")
	select {
	case <-s.Ready:
		t.Error("not yet")
	default:
	}
	fmt.Fprint(s, "dy\nready\n")
	<-s.Ready
	assert.Equal(t, "pid 12\nready\nready\n", s.String())
	assert.Equal(t, 12, Number(t, s.String(), "pid"))
}

func TestEventuallyAsksAgain(t *testing.T) {
	asked := 0
	Eventually(t, "the third time", func() bool { asked++; return asked == 3 })
	assert.Equal(t, 3, asked)
}
