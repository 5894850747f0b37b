//go:build unix

package proc

import (
	"testing"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }
