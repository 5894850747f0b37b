//go:build unix

package clitest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMain is a program if it is called by the name of one, and else puts the programs
// into PATH.
func TestMain(m *testing.M) {
	programs := map[string]func(){"echoer": echoer, "exiter": exiter}
	if program := programs[filepath.Base(os.Args[0])]; program != nil {
		program()
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "clitest")
	self, e := os.Executable()
	for name := range programs {
		err = errors.Join(err, e, os.Symlink(self, filepath.Join(dir, name)))
	}
	if err != nil {
		panic(err)
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	status := LeakChecked(m).Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// exiter ends with the status that its argument says.
func exiter() {
	var status int
	_, _ = fmt.Sscan(os.Args[1], &status)
	fmt.Println("out")
	fmt.Fprintln(os.Stderr, "err")
	os.Exit(status)
}

// echoer prints where it is and what is in $WORD, and then the signals that it
// gets, until its input ends or it gets a hangup.
func echoer() {
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGUSR1, syscall.SIGHUP)
	dir, _ := os.Getwd()
	fmt.Printf("%s\n%s\nlast words", dir, os.Getenv("WORD"))
	if os.Getenv("BRIEF") != "" {
		return
	}
	fmt.Println()
	for sig := range arrived {
		fmt.Println("got", sig)
		fmt.Fprintln(os.Stderr, "err", sig)
		if sig == syscall.SIGHUP {
			_, _ = io.WriteString(os.Stdout, "unread\nand a line without an end")
			os.Exit(3)
		}
	}
}
