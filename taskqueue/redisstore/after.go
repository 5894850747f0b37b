package redisstore

import (
	"context"
	"encoding/binary"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/after"
)

// onFailed are the letters that the scripts know; see after.lua.
var onFailed = map[byte]taskqueue.OnFailed{'s': taskqueue.OnFailedSkip, 'r': taskqueue.OnFailedRun, 'w': taskqueue.OnFailedWait}

// packAfter appends what t waits for: the letter of OnFailed, how many there are, and each with its length.
func packAfter(b []byte, t *taskqueue.Task) []byte {
	b = append(b, (string(t.OnFailed) + string(taskqueue.OnFailedSkip))[0], byte(len(t.After)))
	for _, id := range t.After {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(id))), id...)
	}
	return b
}

// after reads what packAfter has written.
func (r *reader) after(t *taskqueue.Task) {
	t.OnFailed = onFailed[byte(r.fixed(1))]
	for range r.fixed(1) {
		t.After = append(t.After, string(r.bytes(r.fixed(2))))
	}
}

// sendAfter sends those of some calls whose tasks wait for others, each by itself: what is wrong with
// one is not told to the others. It returns the rest.
func (b *batches) sendAfter(queue string, all []*batch) (rest []*batch) {
	for _, one := range all {
		if one.after {
			one.err = b.sendOne(queue, one)
		} else {
			rest = append(rest, one)
		}
	}
	return rest
}

func (b *batches) sendOne(queue string, one *batch) error {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if err := b.s.register(ctx, queue); err != nil {
		return err
	}
	// Programs of the version before cannot read such tasks, and are told so when they start.
	if err := b.s.client.Set(ctx, b.s.formatKey(), format, 0).Err(); err != nil {
		return err
	}
	got, err := b.s.run(ctx, b.s.scripts.enqueueAfter, queue, one.args...)
	if err := unknown(err); err != nil {
		return err
	}
	answer := list(got)
	switch text(answer[0]) {
	case "unknown":
		return after.Unknown(queue, text(answer[1]), text(answer[2]))
	case "refused":
		return after.Refused(text(answer[1]), text(answer[2]), text(answer[3]), text(answer[4]))
	}
	one.read(answer)
	return nil
}
