import sys; sys.path.insert(0,'/tmp/zz')
from report import add
P='/tmp/revB/async/zz_b_test.go'
def a(*x): add(*x,P)
a("B21 (serious) A panic during Goexit is lost",
"`trap` has recovered it (and holds the PanicError), but as the goroutine goes on with Goexit `how` stays `exited` and `t.end` / `bodyRun.close` overwrite err with ErrGoexit. It needs no odd code: a Go task opens an inner Scope, its body calls require/t.FailNow, and a child of the inner scope panics: the inner Scope re-panics while Goexit runs, the PanicError with its stack vanishes, only ErrGoexit is told. With the bare runtime it would crash; here it is silent.",
"1 / 4.1: \"nothing that went wrong is lost\"; \"Panics: ... `Scope` re-panics with `*PanicError`\", \"other panics and errors are attached\"; \"A panic is given only by being returned\".",
["TestY1APanicDuringGoexitIsNotLost"],
"In the deferred functions: `if v := recover(); v != nil { how = panicked; err = trap(t, v) }` (a nil recover leaves how to be decided by whether the function comes back, as now; PanicNilError covers panic(nil)). ErrGoexit could be joined in `others`.")
a("B22 The first error of a ScopeError is not always the one that decided",
"`fail` records under the lock, unlocks, tells observers, and only then cancels. Two failures at once may record in one order and cancel in the other: Errors[0] = b while context.Cause = a (77 of 200,000 rounds on 2 cores). With an observer it is deterministic: the panic comes first, and the cause shown to everyone is an io.EOF of 1 s later (Y2b).",
"4.1: \"the first cause wins and is what `context.Cause` shows to everyone below\"; \"a `*ScopeError` whose first error is the one that decided\".",
["TestY2TheFirstErrorIsTheOneThatDecided","TestY2bThePanicThatCameFirstIsTheCause"],
"Cancel before observers are told; and in sum move the error that the signal carries (by a mark, see B4) to the front. Alternatively record and store the signal in one critical section.")
a("B23 (serious) An error is reported twice if the last straggler comes home just as DetachAfter passes",
"In `abandon`, if live == 0 by then (`over`), s.faults is not cleared, though the verdict is returned; `bury` sums the same faults up again and reports them to the root (asynctest then fails the user's test). The window is the whole of stragglers(), i.e. a dump of all goroutines. Y3 opens the window with an error whose Is is slow; Y3b hits it in plain code within seconds. Also, the scope says \"0 still running\" then.",
"4.1: \"Nothing is lost, nothing is reported twice.\"",
["TestY3NothingIsReportedTwiceWhenTheLastComesHomeAsDetachAfterPasses","TestY3bStress"],
"Clear s.faults in both cases (put `s.faults = nil` and stopping the alarm outside `if !over`). Better: when over, go on as if join had returned true (finish normally: hooks, close, verdict).")
a("B24 A real failure whose type has an Is method for context.Canceled (or DeadlineExceeded) is swallowed as an echo",
"isEcho's last resort asks any leaf `Is(sg.err)`; meant for net.canceledError, it takes every user error that maps itself onto context.Canceled / DeadlineExceeded (RPC and HTTP clients do: 499, deadline codes): it is neither the error nor the cause of the context, and its own content is lost.",
"4.1: \"A child echoes when every leaf of the error it returns **is the error or cause of its own context**\"; \"A `context.Canceled` from elsewhere ... is a real failure\".",
["TestY4AnErrorThatMatchesCanceledIsNoEcho"],
"Restrict to package net's own: compare reflect.TypeOf(err).PkgPath() == \"net\" (types *net.canceledError / *net.timeoutError), or capture its value once.")
a("B25 A derived context that expired while the scope lived, told after the scope was cancelled, is swallowed as an echo",
"`echoes` asks whether the scope is cancelled *now*, not whether that is why the task's context was. The task was stopped by its own deadline at 1 s, the scope by a sibling at 2 s, the task returns its DeadlineExceeded at 3 s: lost. The same with the task option Timeout: a *TimeoutError that is nobody's but the task's own (Y5b) is dropped.",
"4.1: \"A `context.Canceled` from elsewhere, or **from a derived ctx while the scope lives**, is a real failure and is\" (listed). (The letter of the sentence before, \"the error or cause of its own context while the scope is cancelled\", can be read the other way for Y5; a lost Timeout contradicts \"nothing that went wrong is lost\" in either reading.)",
["TestY5ATaskTimeoutBeforeTheCancellationIsNotLost","TestY5bATaskTimeoutBeforeTheCancellationIsNotLost"],
"In `echoes`: v.echo only if the task's signal comes from the scope: same(tsg.cause, s.stopped().cause). (The task's signal is kept when it is set first, so this is exact.)")
a("B26 (minor) An error given in an exit hook is reported by the scope as well",
"takeUnclaimed runs before the exit hooks; an Await in a hook is given the error, the scope fails with it all the same.",
"4.1: \"if nobody ever does, it fails the scope at its end. Nothing is lost, nothing is reported twice. An error *has been given* once Await ... returned it\".",
["TestY6AnErrorGivenInAnExitHookIsNotReportedAgain"],
"Let sum include the unclaimed without taking them while hooks still run, and take them in close(); or say in section 8 that the end begins with the exit hooks.")
a("B27 (minor) Two Goexits are one",
"leafVerdict does not look at t.how: an ErrGoexit whose scope was cancelled because of an ErrGoexit is an 'echo' and not listed, although the task never returned an error. A task with a scope half is listed (finish checks h == returned).",
"4.1: \"Goexit in a task is never silent: `ErrGoexit`.\"; \"A child echoes when every leaf of the error it *returns* ...\".",
["TestY8TwoGoexitsAreTwo"],
"leafVerdict: `if v.panic != nil || sg == nil || t.how != returned { return v }` with the stop error joined as for any failure.")
a("B28 (minor) What goes wrong late on a task that ended without a scope half goes to the process root",
"endedHalf.home is `process`; noteHook on it reports there, not at the root in ctx: under asynctest it is printed to stderr and the test does not fail. (The task's name is lost as well: \"discard hook of :\".)",
"4.2: \"attach to the root in ctx (`asynctest` installs one, so tests never share)\"; 4.1 \"Nothing is lost\".",
["TestY9WhatALateExitHookSaysGoesToItsRoot"],
"Report by t.owner.home where t is the promise: in settleUnowned remember the root (task.home of the ctx's task), or let noteHook take the root from the caller's task.")
a("B29 (minor) Observers hear of a panic never or several times",
"EventPanic is told by every scope the panic passes (3 for two inner scopes), and not at all for a future's leaf (0). EventPanic is documented as \"a handler has panicked and what it stands in is being cancelled\".",
"4.1 Panics: \"Observers hear of it at once\".",
["TestY10EventPanicOfAFuture","TestY10bEventPanicOnce"],
"Tell where the panic is trapped (once, whether leaf or not, task or body), not in fail.")
