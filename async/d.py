import sys; sys.path.insert(0,'/tmp/zz')
from report import add
add("B34 The 10 s print holds the panic and its stack twice, and does not say who is waited for if it is the body",
"`brief` is meant to shorten the panic in StragglerError's text, but `Cause` is stopped(Canceled, p), a *stopError, so the type assertion misses. And a body that does not come home is not in Left: \"0 still running\". (With the sibling errors of B30 it multiplies.)",
"4.1: \"printed to stderr **once**, with the stack and **who is waited for**\".",
["TestW14TheLatePrintHoldsTheStackOnceAndNamesABodyThatIsWaitedFor"],
"brief: unwrap a *stopError to its cause first (or errors.As to *PanicError); the body as in B10.",'/tmp/revB/async/zz_d_test.go')
