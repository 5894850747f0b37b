import sys; sys.path.insert(0,'/tmp/zz')
from report import add
P='/tmp/revB/async/zz_a_test.go'
open('/tmp/review-B.md','w').write('''# Review B: scopes and outcomes (clone /tmp/revB at 73d2507)

All tests are in /tmp/revB/async/zz_*_test.go, package async_test. Header they share:

```go
package async_test

import (
	"context"; "errors"; "fmt"; "go/scanner"; "runtime"; "strings"; "sync/atomic"; "testing"; "testing/synctest"; "time"
	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var zzErr = errors.New("zz: real failure")
```
''')
def a(*x): add(*x,P)
a("B1 (serious) Once DetachAfter has fired, exit hooks run all at once, and Scope spins",
"`giveUp` sets `s.gaveUp`; from then on `join` returns false at once whenever a child is left. `runExits` and the loop in `finish`/`bury` ignore that result: so every exit hook is started without waiting for the one before, the loop `for s.runExits() || !s.close() { s.join() }` spins at 100 % CPU until the hooks end, and in a synctest bubble it never ends (time cannot advance: Z1c hits -timeout). Happens (a) when DetachAfter passes while an exit hook or the body runs, and (b) always in `bury`, i.e. for every scope that really left stragglers. The spin also never ends if an exit hook starts a stubborn task: DetachAfter then does not let Scope return.",
"4.1 OnExit: \"last in, first out, **one at a time**, after all tasks have ended\"; 4.8 \"Works in a testing/synctest bubble\".",
["TestZ1ExitHooksOneAtATimeAfterDetachAfter","TestZ1bExitHooksOneAtATimeBehindAStraggler","TestZ1cDetachAfterAndASlowExitHookInABubble"],
"Let giving up be a parameter of join: `join(mayGiveUp bool)`; runExits/bury/second-round joins of hooks pass false (hooks are bounded by their own context), the joins between rounds for stragglers pass true and go to `abandon`. parkJoiner's condition must take the same parameter.")
a("B2 (serious) Exit hooks of a scope that returned by DetachAfter are told outcome nil although it failed",
"`abandon` clears `s.faults` (\"told now\") and `bury` calls `runExits(nil, false)`: the hook (commit/rollback!) sees success of a scope that failed.",
"4.1 OnExit: \"each sees the outcome\".",
["TestZ2ExitHookOfAnAbandonedScopeSeesTheOutcome"],
"Keep abandon's verdict (err incl. the StragglerError) in the stand or the scope and hand it to the hooks in bury: outcome = join(told, s.sum(nil,false).err); report only what is new.")
a("B3 (serious) A panic that is the 33rd unclaimed failure is lost",
"`keep` only counts what finds no place among 32 unclaimed, panics too. Scope returns a ScopeError \"and 1 more\" and does not panic; value and stack are gone.",
"4.1: \"A panic is given only by being returned\"; \"if nobody awaited, the scope re-panics\"; \"Nothing is lost\".",
["TestZ3APanicBehindThirtyTwoUnclaimedErrorsIsRaised"],
"In keep: a failure with v.panic always gets a place (`x.kept = len(f.unclaimed) < maxListed || x.v.panic != nil`, or displace a plain error into the count).")
a("B4 (serious) An error of a type that is not comparable is reported twice, and is never the failure itself",
"`same` says false for uncomparable types (go/scanner.ErrorList, validator.ValidationErrors, any slice or struct-with-slice error), so `f.has(sg.cause)` misses that the cause is f.errs[0]: `sum` takes it for a cancellation from outside and puts stopError{Canceled, E} before E. `Scope(ctx, func() error { return scanner.ErrorList{...} })` alone returns a ScopeError with two entries that also matches context.Canceled. Siblings that return context.Cause(ctx) are no echoes either.",
"4.1: \"nothing is reported twice\"; \"What Scope returns: nil; or the failure itself when there is one\"; \"A child echoes when every leaf ... is the error or cause of its own context\".",
["TestZ4AnUncomparableErrorIsReportedOnce","TestZ4bAnEchoOfAnUncomparableCause"],
"Do not compare: let `fail` note in the signal (or in faults) that the cause is its own (`signal.own *scope` / index). For `isEcho`, compare uncomparable values of the same type by reflect pointer (slice/map: UnsafePointer and Len) or reflect.DeepEqual.")
a("B5 (serious) A daemon started after the daemons were dismissed is never cancelled: Scope hangs for ever",
"`join` dismisses once (`s.dismissed`), children added later with Daemon() are neither cancelled at add nor by a later round. A daemon that starts its successor as it is told to stop, or an exit hook that starts a daemon, hangs the scope.",
"4.1/4.2: \"`Daemon()`: cancelled with `ErrScopeDone` once the body and the ordinary tasks have ended; still joined.\" and 1: \"every wait has an end\".",
["TestZ5ADaemonStartedLateIsCancelledToo","TestZ5bADaemonStartedByAnExitHook"],
"In join: in the case live == daemons, cancel every daemon whose half has no signal yet (keep `dismissed` only for dismissedDaemon), and have add wake the joiner when a daemon is added to a dismissed scope.")
a("B6 A slow observer holds up the cancellation after a panic or a failure",
"`goTask.finish` calls observers (EventEnd) before `childFailed`, and `fail` calls them (EventPanic) before `s.cancel`; both wait for the observer. An observer that blocks (or waits for the cancellation it was told of: deadlock) keeps the siblings running, and in the meantime another failure may become the cause.",
"4.1 Panics: \"the panicking child's scope is cancelled *at once*\" (and only then \"Observers hear of it at once\").",
["TestZ6ASlowObserverDoesNotHoldUpTheCancellation"],
"In fail: cancel first, tell afterwards. In goTask.finish: childFailed before observed (the task is still a child, so the scope cannot end before the observer has returned).")
a("B7 A panicking Go task that has a stubborn child of its own does not cancel its siblings until that child has ended",
"`goTask.finish` → `t.end` joins what the task has started; only then `childFailed` cancels the owner. The sibling here is cancelled an hour late. (The 10 s print does appear.)",
"4.1: \"the panicking child's scope is cancelled *at once*, siblings are joined\"; doc.go: \"A panic of a Go task, or of a body, cancels its scope at once\".",
["TestZ7APanickingTaskWithAStubbornChildCancelsTheScopeAtOnce"],
"For kindGo with how == panicked: cancel t.owner with the PanicError as cause (recording it: owner.fail(err,p)) as soon as the panic is trapped, before t.end; childFailed later only adds what came beside it (fail already ignores p == f.panics; a copy q made by sum should replace p there).")
a("B8 One panic is printed several times on its way up",
"Each scope it passes through arms an alarm of its own (`fail`), and nobody knows that it was printed.",
"4.1: \"one that has not been re-raised after 10 s (somebody does not come home) is printed to stderr **once**\".",
["TestZ8APanicIsPrintedOnceAlongItsWay"],
"An atomic `printed` flag in PanicError (shared by the copies, so a pointer), CompareAndSwap in printLate.")
a("B9 A panic behind a future that nobody awaits is not printed after 10 s",
"`keep` arms no alarm, `takeUnclaimed` sets f.panics without one: while a sibling (or an exit hook) does not come home, nobody ever hears of the panic. No EventPanic either for a leaf future (one with a scope half tells it).",
"4.1: \"Observers hear of it at once, and one that has not been re-raised after 10 s (somebody does not come home) is printed to stderr once, with the stack and who is waited for.\"",
["TestZ9APanicBehindAFutureIsPrintedToo"],
"Arm the alarm in keep for a failure with v.panic (print only if !x.taken or it stands in f.panics), and tell EventPanic where the panic is trapped, for leaves too.")
a("B10 OnStall is not called when it is the body that stalls, nor for tasks started after d",
"`stalled` gives up for good if live == 0 at d. A body that ignores its context is never reported; neither is a stubborn task that the body starts later.",
"4.1: \"`OnStall(d, f)` calls f once, d after cancellation.\"; its doc comment: \"calls f once ... if the scope has not ended d after it was cancelled\".",
["TestZ10OnStallIsCalledForAStubbornBody","TestZ10bOnStallIsCalledForATaskStartedLate"],
"`ended := s.ended` only, and add the body (s.t, state, no stack or the stack of a goroutine in bodyRun.call) to Left when its state says the body still runs.")
a("B11 Stragglers inside an inner Scope are not named",
"`newStragglerError` looks through tasks that are joining, but a body stays in stateRunning while Scope joins. So the answer to 'who is left' is an anonymous \"scope (aborting)\" without a stack, in the pattern the docs recommend (every function opens its own Scope); with DetachAfter only the task in the middle is named. The same text is what the 10 s print says.",
"4.1: \"`OnStall` gives f a `*StragglerError` that names who is left\"; \"Scope returns with a `*StragglerError` that names them, with stacks\".",
["TestZ11OnStallNamesWhoIsLeftInAnInnerScope","TestZ11bDetachAfterNamesWhoIsLeftInAnInnerScope"],
"Let bodies note that they join (move to stateJoining in close), and always descend into kindBody children; list the body itself only while its function runs.")
a("B12 A cancelled scope returns nil although a child echoed, if an Await had been told before",
"The same program returns the cancellation when the handler ends at once, and nil when it ends a moment after the Await under the cancelled scope ctx has returned: `accountLocked` skips noteEcho when `told`. The body ignores the Await's error here, as it may; the cancelled child was real.",
"4.1: \"Scope returns nil only if nothing was skipped and **no child echoed a cancellation**\". (The reading in 8, \"has told its owner and fails no scope later\", is for a future aborted through its handle; this one was cancelled with its scope.)",
["TestZ12bAnEchoAfterItsWaiterWasToldCounts","TestZ12AnEchoAfterItsWaiterWasToldCounts"],
"In accountLocked note the echo if the scope's cancellation is what stopped the task (its cause is the owner's), told or not.")
a("B13 (minor) A cancelled scope whose only error is a hook's returns an error that matches neither ctx.Err() nor the cause",
"`hurt` in sum leaves f.hooks out.",
"4.1: \"A cancelled scope's error matches both `ctx.Err()` and `context.Cause(ctx)`\"; \"Errors of exit and abort hooks come after and never replace\".",
["TestZ13AnErrorOfACancelledScopeMatchesErrAndCause"],
"`hurt := ... || len(f.hooks) > 0` (or narrow the sentence in section 8).")
a("B14 (minor) DetachAfter with another failure returns a joinError, not a *ScopeError",
"`abandon` uses errors.Join(v.err, e): errors.As(*ScopeError) fails, there is no `Errors[0]` that decided, and a bounded ScopeError may get nested in it.",
"4.1: \"What `Scope` returns: nil; or the failure itself when there is one; or a `*ScopeError` whose first error is the one that decided\".",
["TestZ14AFailureAndAStragglerMakeAScopeError"],
"joined(s.t, append(errs, e), dropped) — let sum take the straggler as a last error.")
a("B15 (serious) Shutdown waits for ever for an abort hook that overruns",
"`r.waitFor(nil, no hooks)` has no end: a hook that ignores its context keeps Shutdown, and the exit of the program, for ever.",
"4.2: abort hook \"its overrun is a straggler\"; 4.1 Shutdown \"waits for their abort hooks and reports who is left\"; 1 \"every wait has an end\".",
["TestZ15ShutdownDoesNotWaitForeverForAHook"],
"Wait for hooks whose own context is not done yet (each hook has a deadline; count it out of `hooking` when the deadline passes, e.g. from its timer), then report.")
a("B16 Shutdown does not wait for abort hooks below the root's own children",
"`hooksLocked` looks only at `hooking` of the root's direct children. The hooks of DetachAfter's stragglers, and of what a detached task has started, get only the 100 ms grace and are reported as stragglers within their 5 s.",
"4.1: \"`Shutdown` refuses new ones, waits for them and for stragglers until ctx ends, then cancels, **waits for their abort hooks** and reports who is left\".",
["TestZ16ShutdownWaitsForTheAbortHooksOfStragglers","TestZ16bShutdownWaitsForTheAbortHooksInsideADetachedTask"],
"Walk the tree below (all halves, locks one at a time) or count hooks in the top-level task under the root as well as in their scope.")
a("B17 (minor) A late exit hook has 5 s whatever HookTimeout of its scope says",
"OnExit on an ended scope uses defaultHookTimeout instead of s.hookTimeout().",
"4.1: \"each with a deadline of its own (5 s, `HookTimeout`)\".",
["TestZ17ALateExitHookHasTheHookTimeoutOfItsScope"],
"Use t.owner/half's hookTimeout (for a leaf that ended with endedHalf: that of t.more and t.owner).")
a("B18 A promise rejected with an error that wraps ErrAbandoned, and awaited by nobody, is lost",
"accountLocked asks errors.Is(v.err, ErrAbandoned) instead of whether it was abandoned; passing on the error of another, abandoned promise is swallowed.",
"4.2: \"a rejected one that nobody awaited is [a failure of the scope]\"; \"Nothing is lost\".",
["TestZ18ARejectionThatMentionsErrAbandonedIsAFailure"],
"Let abandon() say so in a flag (or compare by identity with ErrAbandoned and let Reject wrap it).")
a("B19 (minor) OnFailure is not asked about an error that was returned and only mentions ErrGoexit",
"childFailed asks errors.Is(v.err, ErrGoexit): a Go task that *returns* the error of a future whose handler called Goexit stops the server.",
"4.1: OnFailure \"sees each failing Go task's error: nil carries on, for servers and accept loops\"; doc: not asked about \"panics, Goexit\" — this task did neither.",
["TestZ19OnFailureSeesAReturnedErrGoexit"],
"Decide by t.how == exited. The same holds for verdict.mustRaise (keep `how` in the verdict).")
a("B20 (minor) ObserverFunc(nil) passes Observe",
"No panic at the call; every event then panics and the scope fails with PanicErrors.",
"4.1: panics with a message \"so does a nil function anywhere\".",
["TestZ20ANilObserverFuncPanics"],
"In Observe: `if f, ok := o.(ObserverFunc); ok && f == nil { panic(...) }`.")
