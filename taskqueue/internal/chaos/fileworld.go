//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
	"github.com/ambit-go/ambit/taskqueue/internal/chaos/audit"
	"github.com/ambit-go/ambit/taskqueue/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// A fileWorld is a file that processes share.
type fileWorld struct {
	*world
	path string
	disk *disk
}

func newFileWorld(_ context.Context, seed uint64, dir string) (*world, error) {
	w, err := newWorld("file", seed, dir)
	if err != nil {
		return nil, err
	}
	w.shared = true
	f := &fileWorld{world: w}
	if f.disk, err = newDisk(filepath.Join(w.dir, "disk")); err != nil {
		return nil, err
	}
	f.path = filepath.Join(f.disk.dir, "tasks")
	w.fleet = newFleet(w.journals(), "file:"+f.path, seed, true)
	w.open = func(context.Context) (taskqueue.Store, error) { return f.openPatiently() }
	w.advance = func(d time.Duration) error {
		clock.Set(d) // this process may be the one that has the file by now
		w.fleet.setClocks(int(d / time.Second))
		return nil
	}
	w.left = f.left
	w.mend = func(context.Context) error { return f.disk.empty() }
	w.close = f.disk.close
	deck := []fault{
		{"kill -9 of the process that has the file", func(_ context.Context, _ *mathrand.Rand) (bool, error) {
			return w.fleet.signal(f.owner(), syscall.SIGKILL), nil
		}},
		{"the process that has the file suspended", func(ctx context.Context, rng *mathrand.Rand) (bool, error) {
			c := f.owner()
			ok := w.fleet.signal(c, syscall.SIGSTOP)
			rest(ctx, ms(rng, 50, 2500))
			return ok && w.fleet.signal(c, syscall.SIGCONT), nil
		}},
		{"the clock of the process that has the file put forward or back by an hour", f.jump},
		{"kill -9 of all processes, and a torn write in the file", f.torn},
		{"kill -9 of all processes, and a copy of the file damaged at its end", f.damaged},
	}
	if f.disk.err == nil {
		deck = append(deck, fault{"a full disk", f.full})
	} else {
		w.missing = append(w.missing, fmt.Sprintf("a full disk: mount: %v", f.disk.err))
	}
	w.decks = [][]fault{w.faultsOfProcesses(), deck}
	return w, nil
}

// openPatiently opens the file, or reaches the process that has it.
func (f *fileWorld) openPatiently() (s taskqueue.Store, err error) {
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		if s, err = filestore.Open(f.path); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// owner returns the process that has the file, which listens on its socket.
func (f *fileWorld) owner() *child {
	conn, err := net.Dial("unix", f.path+".sock")
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if who, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	})
	return f.fleet.of(func(c *child) bool { return c.cmd.Process.Pid == pid })
}

// jump puts the clock of the process that has the file forward or back, and later to
// where it was.
func (f *fileWorld) jump(ctx context.Context, rng *mathrand.Rand) (bool, error) {
	c := f.owner()
	if !f.fleet.setClock(c, 3600*(1-2*rng.IntN(2))) {
		return false, nil
	}
	rest(ctx, 2*lease)
	return f.fleet.setClock(c, 0), nil
}

// full fills the disk. The process that has the file has to open it again when there
// is room, which ends all leases.
func (f *fileWorld) full(ctx context.Context, rng *mathrand.Rand) (bool, error) {
	from := ledger.Now()
	err := f.disk.fill()
	rest(ctx, ms(rng, 200, 1200))
	err = errors.Join(err, f.disk.empty())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takeovers = append(f.takeovers, audit.Span{From: from, To: ledger.Now() + int64(3*lease)})
	return err == nil, err
}

// alone kills all processes, calls g, and lets new ones begin.
func (f *fileWorld) alone(g func() error) error {
	f.fleet.killAll()
	err := g()
	return errors.Join(err, f.fleet.want("worker", 3), f.fleet.want("producer", 2))
}

// torn leaves in the file what a commit leaves that power has ended in the middle:
// pages that nothing refers to, and a half of the next meta page.
func (f *fileWorld) torn(context.Context, *mathrand.Rand) (bool, error) {
	err := f.alone(func() error {
		used, page, err := extent(f.path)
		if err != nil {
			return err
		}
		file, err := os.OpenFile(f.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		older, err := olderMeta(file, page)
		if err != nil {
			return err
		}
		noise := make([]byte, 4*page)
		_, _ = rand.Read(noise)
		_, err = file.WriteAt(noise, used)
		if err == nil {
			_, err = file.WriteAt(noise[:page/2], older)
		}
		return err
	})
	return err == nil, err
}

// extent returns how much of a bbolt file is in use, and how long its pages are.
func extent(path string) (used, page int64, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 10 * time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return 0, 0, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		used, page = tx.Size(), int64(db.Info().PageSize)
		return nil
	})
	return used, page, errors.Join(err, db.Close())
}

// olderMeta returns where the meta page is that the next commit writes over.
func olderMeta(f io.ReaderAt, page int64) (at int64, err error) {
	const magicAt, magic, txidAt = 16, 0xED0CDAED, 64
	var txid [2]uint64
	for i := range txid {
		var b [72]byte
		if _, err := f.ReadAt(b[:], int64(i)*page); err != nil {
			return 0, err
		}
		if binary.NativeEndian.Uint32(b[magicAt:]) == magic { // else it was torn before
			txid[i] = binary.NativeEndian.Uint64(b[txidAt:])
		}
	}
	if txid[0] < txid[1] {
		return 0, nil
	}
	return page, nil
}

// damaged has a copy of the file opened whose end is missing, or is noise: that must
// be told, or do no harm. The file itself goes on.
func (f *fileWorld) damaged(ctx context.Context, rng *mathrand.Rand) (bool, error) {
	copies := filepath.Join(f.dir, fmt.Sprint("copy", ledger.Now()))
	var used, page int64
	err := f.alone(func() (err error) {
		b, err := os.ReadFile(f.path)
		if err == nil {
			err = os.WriteFile(copies, b, 0o600)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(copies) }()
	if used, page, err = extent(copies); err != nil {
		return false, err
	}
	if rng.IntN(2) == 0 {
		err = os.Truncate(copies, used-1-rng.Int64N(used-2*page))
	} else {
		file, e := os.OpenFile(copies, os.O_RDWR, 0)
		if e != nil {
			return false, e
		}
		noise := make([]byte, min(int64(1+rng.IntN(4))*page, used-2*page))
		_, _ = rand.Read(noise)
		_, err = file.WriteAt(noise, used-int64(len(noise)))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return false, err
	}
	return true, f.look(ctx, copies)
}

// look has a process open a file and read it all. It must not crash.
func (f *fileWorld) look(ctx context.Context, path string) error {
	c, err := startChild(&role{Do: "opener", Name: fmt.Sprint("opener", ledger.Now()), URL: "file:" + path, Dir: f.journals()})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	_ = c.cmd.Wait()
	if code := c.cmd.ProcessState.ExitCode(); code != 0 && code != 1 {
		return fmt.Errorf("a process that opens a damaged file ends with %v: %s", c.cmd.ProcessState, lastOf(c.stderr))
	}
	return nil
}

// look is the role of an opener: it ends with 1 if it was told that the file is damaged.
func (r *role) look(ctx context.Context) error {
	s, err := taskqueue.Open(ctx, r.URL)
	if err != nil {
		return err
	}
	return errors.Join(new(audit.Case).Load(ctx, s, queueName), s.Close())
}

// left returns the keys that hold something of a task, and what is wrong with the file.
func (f *fileWorld) left(context.Context) (left []string, err error) {
	db, err := bbolt.Open(f.path, 0o600, &bbolt.Options{Timeout: 10 * time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		for e := range tx.Check() {
			left = append(left, "a fault of the file: "+e.Error())
		}
		return tx.Bucket([]byte("taskqueue")).ForEach(func(k, _ []byte) error {
			if k[0] != 'q' && k[0] != 'p' { // the queue as a whole, and its periodic jobs
				left = append(left, fmt.Sprintf("the key %q", k))
			}
			return nil
		})
	})
	return left, errors.Join(err, db.Close())
}
