// Package bench holds ambit beside its peers. It is a module of its own, so that
// what it compares with is nobody's dependency. make bench runs its programs and writes
// docs/performance.md and docs/scalability.md:
//
//   - report runs the others, judges and writes;
//   - budgets has async, scheduler and jobqueue, taskqueue and locks have the modules of these names beside others
//     on servers of their own;
//   - scaling has throughput over workers, producers, consumers and processors.
package bench
