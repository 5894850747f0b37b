package clitest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumberIsThatBehindTheWord(t *testing.T) {
	assert.Equal(t, 12, Number(t, "child 11\npid 12\nready\n", "pid"))
}

func TestEventuallyAsksAgain(t *testing.T) {
	asked := 0
	Eventually(t, "the third time", func() bool { asked++; return asked == 3 })
	assert.Equal(t, 3, asked)
}
