package adopting

import (
	"errors"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("ADOPTING") == "main" {
		main()
	}
	goleak.VerifyTestMain(m)
}

var errTest = errors.New("planted")
