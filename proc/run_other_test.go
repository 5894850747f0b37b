//go:build !unix

package proc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ambit-go/ambit/proc"
)

func TestWhereThereAreNoGroupsRunSaysSo(t *testing.T) {
	result, err := proc.Run(context.Background(), proc.Command{Args: []string{"true"}})
	if !errors.Is(err, errors.ErrUnsupported) || result.Status() != -1 {
		t.Error(result, err)
	}
}
