//go:build linux

package etcdtest_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
)

// patient is for tests that are not about a cluster that does not answer: on a machine that is
// busy one that works may take its time.
var patient = etcdkv.Timeout(time.Minute)

func TestMain(m *testing.M) {
	proof.Main(clusterAt)
	if consumer() {
		return
	}
	if code := m.Run(); code != 0 {
		os.Exit(code)
	}
	err := goleak.Find()
	for begin := time.Now(); err != nil && time.Since(begin) < time.Minute; { // connections that were closed end by and by
		err = goleak.Find()
	}
	if err != nil {
		panic(err)
	}
}
