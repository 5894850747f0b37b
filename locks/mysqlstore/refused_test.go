package mysqlstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// TestWhatTheServerWillNeverDoIsInvalid: to ask again does not help.
func TestWhatTheServerWillNeverDoIsInvalid(t *testing.T) {
	url := servers.Shared(t, servers.MariaDB).URL
	for _, wrong := range []string{
		strings.Replace(url, servers.Password, "another", 1), strings.Replace(url, "/locks", "/mysql", 1), strings.Replace(url, "/locks", "/nosuch", 1),
	} {
		_, err := locks.Open(t.Context(), wrong)
		require.ErrorIs(t, err, locks.ErrValidation)
		require.NotErrorIs(t, err, locks.ErrUnavailable)
		require.NotContains(t, err.Error(), servers.Password)
	}
}
