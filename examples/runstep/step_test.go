//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/proc"
)

func TestTheDemonstrationKeepsToTheGraceThatIsAskedFor(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{proc.DefaultGrace: demoGrace, 30 * time.Second: 30 * time.Second} {
		c, err := (&config{demo: true, grace: asked}).command(nil, cli.Streams{})
		require.NoError(t, err)
		assert.Equal(t, want, c.Grace)
	}
}
