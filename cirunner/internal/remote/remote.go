//go:build unix

// Package remote fetches the files of other projects from a git server that the user has
// named.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// limit bounds one question to the server.
const limit = 2 * time.Minute

// A Server has projects: PROJECT is the repository BASE/PROJECT.git.
type Server struct {
	Base string

	dir  string            // of work trees; empty until there is one
	have map[string]string // work trees by project and ref
}

// Checkout returns a work tree of a project: that of a branch, a tag or a commit, or of the
// default branch for an empty ref. It stays until Close.
func (s *Server) Checkout(ctx context.Context, project, ref string) (dir string, err error) {
	project = strings.TrimPrefix(path.Clean("/"+project), "/")
	if strings.HasPrefix(ref, "-") || strings.HasPrefix(project, "-") || project == "" {
		return "", fmt.Errorf("%q of %q is no branch, tag or commit of a project", ref, project)
	}
	key := project + "@" + ref
	if dir := s.have[key]; dir != "" {
		return dir, nil
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "cirunner-include-"); err != nil {
			return "", err
		}
		s.have = map[string]string{}
	}
	dir = filepath.Join(s.dir, strconv.Itoa(len(s.have)))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--", dir},
		{"-C", dir, "fetch", "--quiet", "--depth=1", "--", s.url(project), cmp.Or(ref, "HEAD")},
		{"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "core.symlinks=false", "checkout", "--quiet", "FETCH_HEAD"},
	} {
		if _, err := git(ctx, args...); err != nil {
			return "", fmt.Errorf("%s: %w", s.url(project), err)
		}
	}
	s.have[key] = dir
	return dir, nil
}

var release = regexp.MustCompile(`refs/tags/(v?(\d+)\.(\d+)\.(\d+))$`)

// Version returns the tag that a version of a component means: ~latest is the latest
// release, 1 and 1.2 are the latest of these. Everything else is what it is.
func (s *Server) Version(ctx context.Context, project, version string) (string, error) {
	if version != "~latest" && !regexp.MustCompile(`^\d+(\.\d+)?$`).MatchString(version) {
		return version, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := git(ctx, "ls-remote", "--tags", "--refs", "--", s.url(project))
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.url(project), err)
	}
	best, tag := [3]int{-1, 0, 0}, ""
	for line := range strings.Lines(out) {
		m := release.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || version != "~latest" && !strings.HasPrefix(strings.TrimPrefix(m[1], "v")+".", version+".") {
			continue
		}
		var number [3]int
		for i := range number {
			number[i], _ = strconv.Atoi(m[i+2])
		}
		if cmp.Or(cmp.Compare(number[0], best[0]), cmp.Compare(number[1], best[1]), cmp.Compare(number[2], best[2])) > 0 {
			best, tag = number, m[1]
		}
	}
	if tag == "" {
		return "", fmt.Errorf("%s has no release of the version %s", s.url(project), version)
	}
	return tag, nil
}

// Close removes the work trees.
func (s *Server) Close() error {
	if s == nil || s.dir == "" {
		return nil
	}
	dir := s.dir
	s.dir, s.have = "", nil
	return workdir.RemoveAll(dir)
}

func (s *Server) url(project string) string {
	return strings.TrimSuffix(s.Base, "/") + "/" + project + ".git"
}

// git runs git, which asks nobody for a password.
func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "GIT_SSH") || name == "GIT_ASKPASS" {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = errors.New(text)
		}
		return "", err
	}
	return out.String(), nil
}
