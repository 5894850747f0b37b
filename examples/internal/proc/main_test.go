//go:build unix

package proc

import (
	"testing"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// helpers are programs that the tests run.
var helpers = map[string]func(){}

func TestMain(m *testing.M) { clitest.Main(m, helpers) }
