package lockstest_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks/lockstest"
)

// echo answers every byte with itself, and counts them.
func echo(t *testing.T) (address string, served chan byte) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	served = make(chan byte, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				b := make([]byte, 1)
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
					served <- b[0]
					_, _ = c.Write(b)
				}
			}()
		}
	}()
	return l.Addr().String(), served
}

func dial(t *testing.T, address string) net.Conn {
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func says(t *testing.T, c net.Conn, b byte) {
	t.Helper()
	_, err := c.Write([]byte{b})
	require.NoError(t, err)
	got := make([]byte, 1)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, b, got[0])
}

func TestAProxyCarriesWhatIsSaid(t *testing.T) {
	address, _ := echo(t)
	p := lockstest.NewProxy(t, "tcp", address)
	c := dial(t, p.Address)
	says(t, c, 'a')
	p.Delay(20 * time.Millisecond)
	begin := time.Now()
	says(t, c, 'b')
	require.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond)
}

func TestASilentProxyClosesNothingUntilItIsHealed(t *testing.T) {
	address, served := echo(t)
	p := lockstest.NewProxy(t, "tcp", address)
	c := dial(t, p.Address)
	says(t, c, 'a')
	<-served
	p.Silence()
	_, err := c.Write([]byte{'b'})
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = c.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.Empty(t, served, "the server has heard nothing")
	p.Heal()
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	says(t, dial(t, p.Address), 'c')
}

func TestALostAnswerIsOfARequestThatWasServed(t *testing.T) {
	address, served := echo(t)
	p := lockstest.NewProxy(t, "tcp", address)
	c := dial(t, p.Address)
	p.Lose(1)
	_, err := c.Write([]byte{'x'})
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	require.Equal(t, byte('x'), <-served)
	require.Equal(t, 1, p.Lost())
	says(t, dial(t, p.Address), 'y')
}

func TestAProxyThatRefuses(t *testing.T) {
	address, _ := echo(t)
	p := lockstest.NewProxy(t, "tcp", address)
	c := dial(t, p.Address)
	says(t, c, 'a')
	p.Refuse()
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	again := dial(t, p.Address)
	_, err = again.Read(make([]byte, 1))
	require.Error(t, err)
	p.Heal()
	says(t, dial(t, p.Address), 'b')
}
