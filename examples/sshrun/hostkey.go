//go:build unix

package main

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// pinned accepts the host key with this fingerprint, as ssh-keygen -l prints
// it, and no other.
func pinned(fingerprint string) ssh.HostKeyCallback {
	return func(host string, _ net.Addr, key ssh.PublicKey) error {
		if got := ssh.FingerprintSHA256(key); got != fingerprint {
			return fmt.Errorf("%s has the host key %s, not that of -host-key", host, got)
		}
		return nil
	}
}

// known accepts the host keys in a known_hosts file.
func known(file string) (ssh.HostKeyCallback, error) {
	check, err := knownhosts.New(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s to check host keys with; name one with -known-hosts, or the key with -host-key", file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the host keys in %s: %w", file, err)
	}
	return func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := check(host, remote, key)
		if bad, ok := errors.AsType[*knownhosts.KeyError](err); ok {
			return &hostKeyError{host, file, key, bad}
		}
		return err
	}, nil
}

// A hostKeyError says what to do about a host key. It is the caller's decision:
// the program never trusts a key by itself.
type hostKeyError struct {
	host, file string
	key        ssh.PublicKey
	why        *knownhosts.KeyError
}

func (e *hostKeyError) Error() string {
	fingerprint := ssh.FingerprintSHA256(e.key)
	if len(e.why.Want) > 0 {
		return fmt.Sprintf("the host key of %s is %s, and not the one in %s, line %d: it was changed, or somebody is in between",
			e.host, fingerprint, e.file, e.why.Want[0].Line)
	}
	return fmt.Sprintf("%s is not in %s; if its key %s is right, add the line\n%s",
		e.host, e.file, fingerprint, knownhosts.Line([]string{knownhosts.Normalize(e.host)}, e.key))
}

func (e *hostKeyError) Unwrap() error { return e.why }

// hostKeyAlgorithms are those of the keys that are known of the machine, nil if
// none is. A server may have several keys; without this it could show one that
// is not in the file and be refused.
func (d destination) hostKeyAlgorithms() []string {
	nobody, err := ssh.NewPublicKey(ed25519.PublicKey(bytes.Repeat([]byte{1}, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	bad, ok := errors.AsType[*knownhosts.KeyError](d.hostKey(d.address, &net.TCPAddr{}, nobody))
	if !ok {
		return nil
	}
	var algorithms []string
	for _, known := range bad.Want {
		if t := known.Key.Type(); t == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, t)
		}
	}
	return algorithms
}
