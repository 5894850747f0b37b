// Package tree is the engine of package async: how tasks start, wait, fail, are cancelled and end.
//
// Everything is a [Task]: what Go and Execute start, the body of a Scope, a hook, a promise, the
// root. It is a context, and belongs to the [Scope] that joins it; what it needs to be an owner
// is an inner Scope, made on first need. A [Future] is a Task with those who wait for it. A
// [Verdict] is how a task has ended.
//
// The package calls no function of the API, and knows none of the types of its errors. A feature
// hangs a [Work] on its task, or something in [TaskOptions] and [ScopeOptions]; errors are made
// by the [Codec]. How all this works is in docs/tasks.md.
package tree
