// Package tree is the engine of package async: how tasks start, wait, fail, are cancelled and end.
//
// Everything is a [Task]: what Go and Execute start, the body of a Scope, a hook, a promise, the
// root. It is a context, and belongs to the [Scope] that joins it; what it needs to own others
// is a Scope of its own, made on first need. A [Future] is a Task with those who wait for it. A
// [Verdict] is how a task has ended.
//
// The package knows none of the words that users call, and none of their types of errors. What a
// word does about its task it hangs on that as a [Work], or in [TaskOptions] and [ScopeOptions];
// errors are made by [Words]. How all this works is in docs/tasks.md.
package tree
