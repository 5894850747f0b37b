package cookbook

import (
	"errors"
	"os"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

var errUser = errors.New("cancelled by the user")
