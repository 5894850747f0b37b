//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/ambit-go/ambit/examples/sshrun/sshserver"
)

// A machine is a server with a user, and the files that a client needs.
type machine struct {
	address  string
	hostKeys []ssh.Signer
	identity string // the user's key
	password string // the file that holds it
	dir      string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	_, userKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	public, err := ssh.NewPublicKey(userKey.Public())
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(userKey, "")
	require.NoError(t, err)
	hostKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	second, err := ssh.NewSignerFromKey(hostKey)
	require.NoError(t, err)

	m := &machine{hostKeys: []ssh.Signer{signer(t), second}, dir: t.TempDir()}
	to, _ := listen(t, &sshserver.Server{
		HostKeys: m.hostKeys, User: "ci", Key: public, Password: "secret", Grace: soon,
	})
	m.address = to.address
	m.identity = m.file(t, "identity", string(pem.EncodeToMemory(block)))
	m.password = m.file(t, "password", "secret\n")
	return m
}

func (m *machine) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// knows writes a known_hosts file with a key.
func (m *machine) knows(t *testing.T, key ssh.PublicKey) string {
	t.Helper()
	return m.file(t, "known_hosts", knownhosts.Line([]string{m.address}, key)+"\n")
}

// sshrun runs the program against the machine.
func (m *machine) sshrun(t *testing.T, args ...string) (status int, stderr string) {
	t.Helper()
	args = append([]string{"-host", "ci@" + m.address}, args...)
	p := clitest.Start(t, nil, "sshrun", append(args, "-c", "exit 3")...)
	return p.Wait(), p.Stderr()
}

func TestAHostKeyIsChecked(t *testing.T) {
	m := newMachine(t)
	for _, key := range m.hostKeys { // whichever is known: the server would show one of them by itself
		known := m.knows(t, key.PublicKey())
		status, stderr := m.sshrun(t, "-identity", m.identity, "-known-hosts", known)
		assert.Equal(t, 3, status, stderr)
	}

	changed := m.knows(t, signer(t).PublicKey())
	status, stderr := m.sshrun(t, "-identity", m.identity, "-known-hosts", changed)
	assert.Equal(t, 255, status)
	assert.Contains(t, stderr, "it was changed, or somebody is in between")

	empty := m.file(t, "empty", "")
	status, stderr = m.sshrun(t, "-identity", m.identity, "-known-hosts", empty)
	assert.Equal(t, 255, status)
	assert.Contains(t, stderr, "if its key SHA256:")
	assert.Contains(t, stderr, "add the line\n"+knownhosts.Normalize(m.address)+" ")
}

func TestAPinnedHostKeyIsChecked(t *testing.T) {
	m := newMachine(t)
	accepted := 0
	for _, key := range m.hostKeys { // one of them is the one that it shows
		status, stderr := m.sshrun(t, "-identity", m.identity, "-host-key", ssh.FingerprintSHA256(key.PublicKey()))
		if status == 3 {
			accepted++
			continue
		}
		assert.Contains(t, stderr, "not that of -host-key")
	}
	assert.Equal(t, 1, accepted)
}

func TestAUserIsAuthenticated(t *testing.T) {
	t.Parallel() // a server takes its time to refuse somebody
	m := newMachine(t)
	known := m.knows(t, m.hostKeys[0].PublicKey())
	status, stderr := m.sshrun(t, "-password-file", m.password, "-known-hosts", known)
	assert.Equal(t, 3, status, stderr)

	status, stderr = m.sshrun(t, "-password-file", m.file(t, "wrong", "guess"), "-known-hosts", known)
	assert.Equal(t, 255, status)
	assert.Contains(t, stderr, "unable to authenticate")

	locked := m.file(t, "locked", string(pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte("nobody can tell"),
	})))
	status, stderr = m.sshrun(t, "-identity", locked, "-known-hosts", known)
	assert.Equal(t, 255, status)
	assert.Contains(t, stderr, "has a passphrase")
}

func TestAHostIsTakenApart(t *testing.T) {
	for in, want := range map[string][2]string{
		"host":          {"", "host:22"},
		"me@host":       {"me", "host:22"},
		"me@host:2222":  {"me", "host:2222"},
		"a@b@host":      {"a@b", "host:22"},
		"::1":           {"", "[::1]:22"},
		"me@[::1]:2222": {"me", "[::1]:2222"},
		"me@[fe80::1]":  {"me", "[fe80::1]:22"},
	} {
		user, address := splitHost(in)
		assert.Equal(t, want, [2]string{user, address}, in)
	}
}
