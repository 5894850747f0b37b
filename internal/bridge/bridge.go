// Package bridge lets the packages of this module reach what package async does
// not export.
package bridge

import "context"

// NewRoot returns a context that carries a root of its own. lost is told of
// errors that nobody else can be told. Set by package async.
var NewRoot func(ctx context.Context, lost func(error)) context.Context

// Live returns the names of what is registered at the root of ctx, promises
// left out. Set by package async.
var Live func(ctx context.Context) []string

// InScope reports whether ctx carries a scope. Set by package async.
var InScope func(ctx context.Context) bool

// A Withdrawer is an executor that is made for one task. It is told when the
// task was cancelled before it began: it need not be kept any longer.
type Withdrawer interface{ Withdraw(Token) }

// Token keeps others from being Withdrawers by accident.
type Token struct{}
