//go:build unix

package runner

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// takeCaches puts the caches of the job into its directory. One that cannot be
// had is told, and is missing: a cache only saves time. The keys are made once, before the script
// changes the files that they are made of.
func (a *attempt) takeCaches() {
	for _, c := range a.job.Caches {
		keys := a.cacheKeys(c)
		a.keys = append(a.keys, keys[0])
		pulls, _, err := a.policy(c)
		if err != nil {
			a.note("cirunner: %v: the cache is neither taken nor kept", err)
		}
		if !pulls {
			continue
		}
		for _, key := range keys {
			store := a.caches()
			if !store.Has(key) {
				continue
			}
			if err := store.Take(a.work, a.r.Work, key, a.slug()); err != nil {
				a.note("cirunner: cannot take the cache %s: %s", nameOf(key), named(err, key))
			} else {
				a.note("cirunner: cache %s", nameOf(key))
			}
			break
		}
	}
}

// keepCaches keeps the caches of the job.
func (a *attempt) keepCaches(ctx context.Context, o plan.Outcome) {
	for i, c := range a.job.Caches {
		if _, pushes, _ := a.policy(c); !pushes || o.Cause == plan.Stopped || c.When == pipeline.OnSuccess && !o.OK() || c.When == pipeline.OnFailure && o.OK() {
			continue
		}
		key := a.keys[i]
		paths, err := a.expandAll(c.Paths)
		var n int
		if err == nil {
			n, err = a.caches().Keep(ctx, a.r.Work, key, a.slug(), paths)
		}
		if err != nil {
			a.note("cirunner: cannot keep the cache %s: %s", nameOf(key), named(err, key))
			continue
		}
		a.note("cirunner: cache %s: %s kept", nameOf(key), count(n, "file"))
	}
}

// policy reports whether a cache is taken before the job, and kept after it.
func (a *attempt) policy(c pipeline.Cache) (pulls, pushes bool, err error) {
	policy := c.Policy
	if !pipeline.IsPolicy(policy) {
		if resolved, err := a.resolve(a.job.Variables, nil); err == nil {
			policy, _ = vars.Expand(policy, resolved)
		}
	}
	if !pipeline.IsPolicy(policy) {
		return false, false, fmt.Errorf("cache:policy: %s is none of pull, push and pull-push", c.Policy)
	}
	return policy != pipeline.CachePush, policy != pipeline.CachePull, nil
}

func (a *attempt) caches() workdir.Store {
	return workdir.Store{Dir: a.r.Caches, Waits: func(key string) {
		a.note("cirunner: another job, or another run, has the cache %s: waiting until it gives that back", nameOf(key))
	}}
}

// cacheKeys are the names of directories for a cache, the first its own.
func (a *attempt) cacheKeys(c pipeline.Cache) []string {
	own := c.Key
	if len(c.KeyFiles) > 0 {
		if own != "" {
			own += "-"
		}
		own += a.digest(c.KeyFiles)
	}
	resolved, err := a.resolve(a.job.Variables, nil)
	if err != nil {
		resolved = nil // the script will say so
	}
	var keys []string
	for _, key := range append([]string{own}, c.Fallback...) {
		if expanded, err := vars.Expand(key, resolved); err == nil && expanded != "" {
			key = expanded
		}
		keys = append(keys, "cache-"+url.PathEscape(key))
	}
	return keys
}

// nameOf returns the name of a cache as people know it, in which a masked value is hidden.
func nameOf(key string) string {
	name, err := url.PathUnescape(key)
	if err != nil || words.HasControl(name) {
		return key
	}
	return name
}

// named returns the text of an error of a file with the name of a cache in place of its key, in which nobody sees
// a masked value.
func named(err error, key string) string {
	return strings.ReplaceAll(err.Error(), key, nameOf(key))
}

// digest is of the content of files in the job's directory. A name of anything else counts as an empty file.
func (a *attempt) digest(files []string) string {
	h := sha256.New()
	if root, err := os.OpenRoot(a.dir); err == nil {
		defer func() { _ = root.Close() }()
		for _, name := range files {
			fmt.Fprintf(h, "%s\n", name)
			a.copyContent(h, root, strings.TrimPrefix(filepath.Clean("/"+name), "/"))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:10])
}

// copyContent copies the content of a file to h, until the work of the attempt ends: a file may be of any size.
func (a *attempt) copyContent(h io.Writer, root *os.Root, name string) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // of a pipe, too, it does not wait for a writer
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	for a.work.Err() == nil {
		if _, err := io.CopyN(h, f, 1<<20); err != nil {
			return
		}
	}
}
