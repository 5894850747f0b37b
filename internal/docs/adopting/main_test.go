package adopting

import (
	"errors"
	"os"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	if os.Getenv("ADOPTING") == "main" {
		main()
	}
	os.Exit(clitest.LeakChecked(m).Run())
}

var errTest = errors.New("planted")
