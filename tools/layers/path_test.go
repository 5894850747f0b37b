package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPathNeedsAFailureAndASuccess(t *testing.T) {
	require.Nil(t, newFailurePath(nil, nil, &played{}))
	require.Nil(t, newFailurePath(nil, &played{}, nil))
}
