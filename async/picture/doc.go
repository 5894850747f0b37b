// Package picture is what a look at the live tree of package async has seen: its tasks, what each of
// them waits for, and what is wrong. [async.Snapshot] takes a picture; it is plain data, with a text
// for people and a JSON for programs.
//
// # What is consistent
//
// Nothing is stopped for a look. One scope with at most 256 members is seen at one moment. A larger
// one is seen in slices: a task that lives through the whole look is there once; one that starts or
// ends meanwhile is there or not. Between two scopes time passes. So a wait may be for a task that
// has just gone: it has [Wait.Gone] then. A [Ring] is different: all of its waits were seen twice, and
// lasted together.
//
// The package is experimental: fields may be added, and their meaning stays.
//
// [async.Snapshot]: https://pkg.go.dev/github.com/ambit-go/ambit/async#Snapshot
package picture
