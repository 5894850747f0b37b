//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/sshrun/sshserver"
)

// A config is what the flags say.
type config struct {
	host       string
	identity   string
	password   string // a file
	knownHosts string
	hostKey    string
	command    string
	shell      string
	server     string // how the built-in server misbehaves
	limits     Limits
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.StringVar(&cfg.host, "host", "", "run it on `[user@]host[:port]`; without it, on a server that is built in")
	flags.StringVar(&cfg.identity, "identity", "", "authenticate with the private key in this `file`")
	flags.StringVar(&cfg.password, "password-file", "", "authenticate with the password in this `file`")
	flags.StringVar(&cfg.knownHosts, "known-hosts", "", "the `file` with the host keys to trust (default ~/.ssh/known_hosts)")
	flags.StringVar(&cfg.hostKey, "host-key", "", "trust the host key with this `fingerprint`, SHA256:..., instead")
	flags.StringVar(&cfg.command, "c", "", "run this `script` rather than that of a file")
	flags.StringVar(&cfg.shell, "shell", "bash", "the `command` there that reads a script from its input")
	flags.StringVar(&cfg.server, "server", "", "have the built-in server misbehave: `one of` "+strings.Join(sshserver.Flaws(), ", "))

	l := &cfg.limits
	flags.DurationVar(&l.Connect, "connect-timeout", 10*time.Second, "give up if the shell is not there after this `time`")
	flags.DurationVar(&l.Script, "timeout", 0, "stop the script after this `time`; 0 for no limit")
	flags.DurationVar(&l.Term, "term", 10*time.Second, "the `time` that a script has after TERM, before KILL")
	flags.DurationVar(&l.Kill, "kill", 5*time.Second, "the `time` after KILL, before the connection is closed")
	flags.DurationVar(&l.Output, "output", 5*time.Second, "the `time` that output may come after the end of the script")
	flags.DurationVar(&l.KeepAlive, "keepalive", 15*time.Second, "ask the server for a sign of life at this `interval`, and stop if there is none for three")
}

// check refuses what makes no sense.
func (cfg *config) check(args []string) error {
	l := cfg.limits
	switch {
	case len(args) > 1:
		return cli.Usagef("unexpected argument %q; a script is one file, or - for stdin", args[1])
	case len(args) == 1 && cfg.command != "":
		return cli.Usagef("a script is given with -c or as a file, not both")
	case l.Script < 0:
		return cli.Usagef("-timeout must not be negative; 0 sets no limit")
	case min(l.Connect, l.Term, l.Kill, l.Output, l.KeepAlive) <= 0:
		return cli.Usagef("-connect-timeout, -term, -kill, -output and -keepalive must be positive")
	case cfg.host == "" && (cfg.identity != "" || cfg.password != "" || cfg.knownHosts != "" || cfg.hostKey != ""):
		return cli.Usagef("-identity, -password-file, -known-hosts and -host-key are for -host")
	case cfg.host != "" && cfg.server != "":
		return cli.Usagef("-server is for the built-in server, not for -host")
	case cfg.knownHosts != "" && cfg.hostKey != "":
		return cli.Usagef("-known-hosts and -host-key: one of them decides which key is trusted")
	case cfg.hostKey != "" && !strings.HasPrefix(cfg.hostKey, "SHA256:"):
		return cli.Usagef("-host-key %q: a fingerprint begins with SHA256:, as ssh-keygen -l prints it", cfg.hostKey)
	case cfg.host != "" && cfg.identity == "" && cfg.password == "":
		return cli.Usagef("-host needs -identity or -password-file to authenticate with")
	}
	return nil
}

// script returns the script to run: that of -c, of the file, or the built-in
// one.
func (cfg *config) script(args []string, stdin io.Reader) (string, error) {
	switch {
	case cfg.command != "":
		return cfg.command, nil
	case len(args) == 0 && cfg.host == "":
		return demoScript, nil
	case len(args) == 0:
		return "", cli.Usagef("what is to be run? Name a file, - for stdin, or give a script with -c")
	case args[0] == "-":
		text, err := io.ReadAll(stdin)
		return string(text), err
	}
	text, err := os.ReadFile(args[0])
	return string(text), err
}

// destination reads the flags about the other machine, and the files that they
// name.
func (cfg *config) destination() (destination, error) {
	name, address := splitHost(cfg.host)
	to := destination{address: address, user: name}
	if to.user == "" {
		u, err := user.Current()
		if err != nil {
			return to, cli.Usagef("-host %s: cannot tell who you are; write user@host", cfg.host)
		}
		to.user = u.Username
	}
	if err := cfg.authenticate(&to); err != nil {
		return to, err
	}
	if cfg.hostKey != "" {
		to.hostKey = pinned(cfg.hostKey)
		return to, nil
	}
	file := cfg.knownHosts
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return to, cli.Usagef("cannot find ~/.ssh/known_hosts; name a file with -known-hosts")
		}
		file = filepath.Join(home, ".ssh", "known_hosts")
	}
	var err error
	to.hostKey, err = known(file)
	return to, err
}

// splitHost takes [user@]host[:port] apart and adds the usual port.
func splitHost(s string) (user, address string) {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		user, s = s[:at], s[at+1:]
	}
	if _, _, err := net.SplitHostPort(s); err != nil {
		s = net.JoinHostPort(strings.Trim(s, "[]"), "22")
	}
	return user, s
}

func (cfg *config) authenticate(to *destination) error {
	if cfg.identity != "" {
		key, err := os.ReadFile(cfg.identity)
		if err != nil {
			return fmt.Errorf("-identity: %w", err)
		}
		signer, err := ssh.ParsePrivateKey(key)
		if errors.As(err, new(*ssh.PassphraseMissingError)) {
			return fmt.Errorf("-identity %s has a passphrase, and this program asks for none", cfg.identity)
		}
		if err != nil {
			return fmt.Errorf("-identity %s: %w", cfg.identity, err)
		}
		to.auth = append(to.auth, ssh.PublicKeys(signer))
	}
	if cfg.password != "" {
		password, err := os.ReadFile(cfg.password)
		if err != nil {
			return fmt.Errorf("-password-file: %w", err)
		}
		to.auth = append(to.auth, ssh.Password(strings.TrimRight(string(password), "\r\n")))
	}
	return nil
}
