// Package bridge lets async/asynctest reach what package async does not export.
package bridge

import "context"

// NewRoot returns a context that carries a root of its own. lost is told of
// errors that nobody else can be told. Set by package async.
var NewRoot func(ctx context.Context, lost func(error)) context.Context

// Live returns the names of what is registered at the root of ctx, promises
// left out. Set by package async.
var Live func(ctx context.Context) []string
