import sys; sys.path.insert(0,'/tmp/zz')
from report import add
P='/tmp/revB/async/zz_d_test.go'
add("B30 (serious) A panic is told 2^depth times: its text and the error tree grow exponentially with nested scopes",
"A sibling that fails for real after the cancellation has the cause (the PanicError, with all that stands beside it) joined to its own error, and this is attached to the PanicError again at each scope. With 8 nested scopes and one failing sibling (a failed flush) in each, the panic stands there 256 times in 1.8 MB; at 20 levels Error() needs gigabytes, i.e. the crash report kills the program instead of printing. Is/As walk the same tree.",
"4.1 Panics: \"Its text holds the child's stack; ... other panics and errors are attached; passing through outer scopes it is not wrapped again\"; \"nothing is reported twice\".",
["TestW1ThePanicIsToldOnceThroughOuterScopes"],
"For a Go task (and a body) do not join the cause to the error when the owner has that very cause itself: childFailed should list only what the task adds (keep verdict.own beside verdict.err: the errs without the leading stop if sg.cause is the owner's cause). For futures the pair stays, but when it becomes the scope's (takeUnclaimed) use own too. In stragglers/text print a cause that is a PanicError with brief.",P)
add("B31 The cause is listed once more for every sibling that failed after it",
"Same root as B30, without a panic: Scope: zzErr, and three siblings that return io.EOF afterwards: zzErr stands there 4 times, each sibling as a ScopeError{zzErr, EOF} of its own, so `Errors[i] == io.EOF` finds nothing and 32 entries hold 16 facts.",
"4.1: \"nothing is reported twice\".",
["TestW2TheCauseIsToldOnceInAScopeError"],
"As B30.",P)
add("B32 What Scope has told on DetachAfter is reported again to the root with any later failure of a straggler",
"bury sums up with the scope's signal, which its own failure set: `hurt` puts stopped(zzErr) before the straggler's EOF (has() does not know it, faults were cleared). The root is told ScopeError{zzErr as a cancellation, EOF}, for a panic it stands beside it.",
"4.1: \"nothing is reported twice\".",
["TestW3WhatDetachAfterHasToldIsNotReportedAgain"],
"After abandon, sum must leave the stop error out (a flag `told` on the scope, see B2).",P)
add("B33 (minor) An abort hook that overruns beside a running handler is not named, nor are children of a running task",
"newStragglerError descends only into tasks that are joining; the hook that overran its deadline by far (which is what holds the task, and has a stack) is not in Left as long as the handler also runs.",
"4.2: abort hook: \"its overrun is a straggler\"; 4.1 \"names who is left\".",
["TestX6bOverrunningAbortHookBesideItsHandler"],
"List a running task *and* descend into its children (all were told to stop and are left).","/tmp/revB/async/zz_c_test.go")
