package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
)

// A finding is what doctor says of one thing.
type finding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Do   string `json:"do,omitempty"` // what to do about it
}

// A diagnosis is all that doctor says.
type diagnosis struct {
	Store    string        `json:"store"`
	Queue    string        `json:"queue"`
	Findings []finding     `json:"findings"`
	Audit    kvqueue.Audit `json:"audit"`
}

func (d *diagnosis) add(ok bool, do, format string, args ...any) {
	if ok {
		do = ""
	}
	d.Findings = append(d.Findings, finding{ok, fmt.Sprintf(format, args...), do})
}

func doctorCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		d := &diagnosis{Store: e.store.name, Queue: e.name}
		var err error
		switch {
		case e.store.path != "":
			err = d.file(e.store)
		case e.store.etcd != nil:
			err = d.etcd(ctx, e.store)
		}
		if err == nil {
			err = e.with(ctx, func(q *kvqueue.Queue) (err error) { d.Audit, err = q.Audit(ctx); return err })
		}
		if err != nil {
			return err
		}
		d.queue()
		return e.showDiagnosis(d)
	}
}

func (e *env) showDiagnosis(d *diagnosis) error {
	bad := 0
	for _, f := range d.Findings {
		if !f.OK {
			bad++
		}
	}
	if e.json {
		if err := e.writeJSON(d); err != nil {
			return err
		}
	} else {
		e.sayf("queue %q in %s\n", d.Queue, d.Store)
		if err := e.showAudit(d.Audit); err != nil {
			return err
		}
		for _, f := range d.Findings {
			mark := "ok  "
			if !f.OK {
				mark = "BAD "
			}
			e.sayf("%s %s\n", mark, f.What)
			if f.Do != "" {
				e.sayf("     %s\n", f.Do)
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d findings are bad", bad)
	}
	return nil
}

// queue looks at what the audit has found.
func (d *diagnosis) queue() {
	a := d.Audit
	d.add(len(a.Faults) == 0, "keep a copy of the store, and report what has led to it", "%d faults in the keys of the queue", len(a.Faults))
	for _, fault := range a.Faults {
		d.add(false, "", "%s", fault)
	}
	for _, s := range a.Sessions {
		if !s.Alive && s.Claims > 0 {
			d.add(a.Takers > 0, "start a consumer: it gives them back first of all", "%d items are claimed by %q, which is gone", s.Claims, s.Owner)
		}
	}
	d.add(a.Dead == 0, "kvq dead shows them, kvq requeue puts them back", "%d dead letters", a.Dead)
}

// file looks at the file.
func (d *diagnosis) file(s *store) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	d.add(info.Mode().Perm()&0o077 == 0, "others may read the values: chmod 600 "+s.path, "the file has %d bytes", info.Size())
	return nil
}

// mostUsed is how much of the quota of etcd may be in use, in percent.
const mostUsed = 80

// etcd looks whether the members of a cluster can carry a queue.
func (d *diagnosis) etcd(ctx context.Context, s *store) error {
	alarms, err := s.etcd.AlarmList(ctx)
	if err != nil {
		return err
	}
	d.add(len(alarms.Alarms) == 0, "compact (etcdctl compact), defragment each member (etcdctl defrag), then etcdctl alarm disarm", "%d alarms", len(alarms.Alarms))
	for _, a := range alarms.Alarms {
		what := "a member has found its data to be damaged: replace it"
		if a.Alarm == pb.AlarmType_NOSPACE {
			what = "it is at its quota, and takes no more items; what was claimed can be acknowledged"
		}
		d.add(false, "", "member %x: %s", a.MemberID, what)
	}
	var silent error
	for _, endpoint := range s.etcd.Endpoints() {
		silent = errors.Join(silent, d.member(ctx, s, endpoint))
	}
	if ctx.Err() != nil {
		return silent
	}
	return nil
}

func (d *diagnosis) member(ctx context.Context, s *store, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	m, err := s.etcd.Status(ctx, endpoint)
	if err != nil {
		d.add(false, "start it, or leave it out of -store", "member %s does not answer: %v", endpoint, err)
		return err
	}
	d.add(len(m.Errors) == 0 && !m.IsLearner, "etcdctl endpoint status says more", "member %s: version %s, %s", endpoint, m.Version, state(m.Leader, m.IsLearner, m.Errors))
	quota := m.DbSizeQuota
	if quota == 0 {
		quota = 2 << 30 // what etcd takes if it is not told
	}
	d.add(m.DbSize*100 < quota*mostUsed, "defragment it (etcdctl defrag), raise --quota-backend-bytes, or find what fills it",
		"its file has %d MiB, of which %d are in use, and its quota is %d MiB", m.DbSize>>20, m.DbSizeInUse>>20, quota>>20)
	d.add(m.DbSizeInUse*4 > m.DbSize || m.DbSize < 64<<20, "etcdctl defrag, one member at a time, gives the rest back to the disk", "%d %% of its file are in use", percent(m.DbSizeInUse, m.DbSize))
	compacted, err := s.compacted(ctx, m.Header.Revision)
	if err != nil {
		return err
	}
	d.add(compacted, "give etcd --auto-compaction-mode=periodic --auto-compaction-retention=10m, or a handle of the queue kvqueue.Compact(10*time.Minute)",
		"of %d revisions %s", m.Header.Revision, map[bool]string{true: "the oldest are compacted, or there are few", false: "more than half are not compacted: what was deleted since then is still kept"}[compacted])
	return nil
}

// manyRevisions is from when on it is worth a word that nothing was compacted.
const manyRevisions = 10_000

// compacted reports whether the first revisions are forgotten, or there are but few. One
// that is not forgotten can be read.
func (s *store) compacted(ctx context.Context, revision int64) (bool, error) {
	if revision < manyRevisions {
		return true, nil
	}
	_, err := s.etcd.Get(ctx, "kvq", clientv3.WithRev(revision/2), clientv3.WithSerializable())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return true, nil
	}
	return false, err
}

func state(leader uint64, learner bool, faults []string) string {
	switch {
	case len(faults) > 0:
		return fmt.Sprint(faults)
	case learner:
		return "a learner, which does not answer reads and writes"
	case leader == 0:
		return "without a leader"
	}
	return "well"
}

func percent(of, all int64) int64 {
	if all == 0 {
		return 100
	}
	return of * 100 / all
}
