//go:build linux

package etcdtest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/kvqueue/etcdtest"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	proof.Main(clusterAt)
	if consumer() {
		return
	}
	if code := m.Run(); code != 0 {
		os.Exit(code)
	}
	if err := goleak.Find(); err != nil {
		panic(err)
	}
}
