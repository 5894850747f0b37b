//go:build linux

package etcdtest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/kvqueue/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
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
