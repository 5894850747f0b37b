// Package taskqueuetest tests whether a store keeps the rules that package taskqueue
// builds on. Run it on a store of your own.
package taskqueuetest

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
)

// Run tests stores that open returns: an empty one for every test. It may be called
// in a testing/synctest bubble, or not; no test waits for longer than a second.
func Run(t *testing.T, open func(t *testing.T) taskqueue.Store) {
	all := maps.Clone(tests)
	maps.Copy(all, afterTests)
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() { assert.NoError(t, s.Close()) }()
			f(&fixture{t, s, queue, 0})
			audit(t, s)
		})
	}
}

var tests = map[string]func(*fixture){
	"R1 a task is in one state": oneState,
	"R3 tokens increase":        tokensIncrease,
	"R3 an id that was deleted and added again gets a new token": tokenAfterDelete,
	"R4 only the holder of the token settles and extends":        fenced,
	"R5 a unique key is held until the task has ended":           uniqueKey,
	"R5 a unique key is held until the task starts":              uniqueUntilStart,
	"R7 nothing is handed out before its time":                   notBeforeItsTime,
	"R8 what has finished is settled though its lease is over":   settledLate,
	"R9 crashes and failures are counted apart":                  crashesApart,
	"R10 an enqueue is repeated":                                 enqueueRepeated,
	"R10 a claim is repeated":                                    claimRepeated,
	"R10 a claim that was given up comes late":                   claimLate,
	"R10 a settlement is repeated":                               settleRepeated,
	"R10 a tick is enqueued once":                                tickOnce,
	"the first schedule of a name wins":                          firstSchedule,
	"the newest schedule of a name wins":                         newestSchedule,
	"a claim tells what it has buried and trimmed":               claimTells,
	"what has no handler is counted":                             unhandled,
	"R11 a batch is added whole or not at all":                   wholeBatch,
	"order is by priority, time and id":                          order,
	"a hint that comes before the wait":                          hintBeforeTheWait,
	"a hint when there is room again":                            hintWhenThereIsRoom,
	"a hint when the queue is resumed":                           hintWhenResumed,
	"a paused queue hands out nothing":                           paused,
	"a concurrency limit counts leases":                          concurrency,
	"a rate limit":                                               rate,
	"limits: a key that is full keeps nobody else":               limitByKey,
	"limits: the most specific counts":                           limitMostSpecific,
	"limits: 10,000 tasks of a full key before one of a free":    limitBehindMany,
	"limits: what comes back has its place":                      limitKeepsPlaces,
	"limits: a lease that has run out gives its place back":      limitAfterACrash,
	"limits: a change brings back what was kept":                 limitChanged,
	"limits: a rate keeps tasks until its time":                  limitByRate,
	"limits: acts on what is kept":                               limitActs,
	"limits: what came back and is gone leaves its place":        limitLeavesNobody,
	"limits: what is kept is listed in both orders, and purged":  limitPages,
	"limits: one that is wrong changes nothing":                  limitInvalid,
	"cancel":                          cancel,
	"a dead letter is retried":        retryDead,
	"released tasks spend no attempt": released,
	"an expired task is not started":  expired,
	"pages":                           pages,
	"pages over classes of priority, in both orders":           pagesOverClasses,
	"what has ended last comes first when asked for":           newestFirst,
	"R12 a page is bounded in bytes":                           pageOfLargePayloads,
	"R12 a purge goes in steps":                                purgeInSteps,
	"R12 a step of a purge is bounded in bytes":                purgeOfLargePayloads,
	"R12 what is scheduled is found behind what is ready":      scheduledBehindMuch,
	"R12 a claim is bounded in bytes":                          claimOfLargePayloads,
	"R12 a claim that is repeated is bounded in bytes":         claimRepeatedWithProgress,
	"R12 a claim looks at a thousand tasks at most":            manyExpired,
	"what was retried or was begun does not expire":            retriedDoesNotExpire,
	"every act on every state, with every option":              everyActOnEveryState,
	"RetryAll, CancelAll and DeleteAll do what a filter finds": allOfAFilter,
	"RetryAll leaves what another task holds the key of":       retryAllLeavesHeldKeys,
	"stats are exact": statsAreExact,
	"pages go on when their last task has gone":             pagesGoOnWithoutTheirEnd,
	"a page of what runs misses nothing that is extended":   extendedBetweenPages,
	"long times and large limits are kept":                  longTimes,
	"R11 a request that is wrong changes nothing":           invalidRequests,
	"the function of Configure is called with no lock held": configureCallsNobodyWhileLocked,
	"a rate limit that is switched off and on":              rateOffAndOn,
	"names with any bytes":                                  names,
	"queues are apart":                                      apart,
	"notes are changed in one step":                         notes,

	"sidekiq 843, faktory: what was taken and not heard of runs again":  notLostWhenTaken,
	"river 1302: what looks for lost runs leaves finished ones":         reapingLeavesFinished,
	"asynq 1144, 420: nothing is left of what is deleted":               nothingIsLeftOfWhatIsDeleted,
	"asynq: a known id takes no unique key":                             knownIDTakesNoKey,
	"bull 1893: what is not the next to be due wakes nobody":            onlyTheNextWakes,
	"asynq 1071: not a microsecond early":                               notAMicrosecondEarly,
	"asynq: dead letters are trimmed aloud":                             deadLettersAreTrimmedAloud,
	"asynq 532: what was cancelled is not run again":                    cancelledIsNotRetried,
	"R10 an outcome twice in one call":                                  outcomeTwiceInOneCall,
	"R5 a late failure of a dead task gets its key back, or stays dead": revivedHasItsKey,
	"R9 an outage is no crash":                                          outageIsNoCrash,
	"a task that was started in time does not expire":                   expiryIsForWhatHasNotStarted,
}
