//go:build unix

package main

import (
	"context"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/parse"
	"github.com/ambit-go/ambit/cirunner/internal/remote"
)

// projects are those of a git server, if one was named.
func (c *choice) projects(ctx context.Context) parse.Projects {
	if c.server == nil {
		return nil
	}
	return &fetching{ctx, c.server}
}

// A fetching asks a git server as long as a context lasts.
type fetching struct {
	ctx    context.Context
	server *remote.Server
}

// Checkout returns a work tree of a project.
func (f *fetching) Checkout(project, ref string) (string, error) {
	return f.server.Checkout(f.ctx, project, ref)
}

// Version returns the tag that a version means.
func (f *fetching) Version(project, version string) (string, error) {
	return f.server.Version(f.ctx, project, version)
}
