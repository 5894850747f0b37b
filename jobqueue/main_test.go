package jobqueue_test

import (
	"os"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }
