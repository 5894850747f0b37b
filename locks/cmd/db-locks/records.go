package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// A mutexRecord is a mutex, or a permit of a semaphore, as the original program prints it,
// in its order, nulls too; the fencing token comes last.
type mutexRecord struct {
	MutexKey        string    `json:"mutex_key"`
	TenantID        string    `json:"tenant_id"`
	Version         string    `json:"version"`
	LeaseDurationMS int64     `json:"lease_duration_ms"`
	SemaphoreKey    *string   `json:"semaphore_key"`
	Data            *string   `json:"data"`
	DeleteOnRelease *bool     `json:"delete_on_release"`
	Locked          *bool     `json:"locked"`
	ExpiresAt       naiveTime `json:"expires_at"`
	CreatedBy       *string   `json:"created_by"`
	CreatedAt       naiveTime `json:"created_at"`
	UpdatedBy       *string   `json:"updated_by"`
	UpdatedAt       naiveTime `json:"updated_at"`
	FencingToken    *int64    `json:"fencing_token"`
}

// A semaphoreRecord is a semaphore as the original program prints it.
type semaphoreRecord struct {
	SemaphoreKey    string    `json:"semaphore_key"`
	TenantID        string    `json:"tenant_id"`
	Version         string    `json:"version"`
	MaxSize         int       `json:"max_size"`
	LeaseDurationMS int64     `json:"lease_duration_ms"`
	BusyCount       *int      `json:"busy_count"`
	FairSemaphore   *bool     `json:"fair_semaphore"`
	CreatedBy       *string   `json:"created_by"`
	CreatedAt       naiveTime `json:"created_at"`
	UpdatedBy       *string   `json:"updated_by"`
	UpdatedAt       naiveTime `json:"updated_at"`
}

// A naiveTime is a time of UTC without a zone, as the original program has it. Zero is null.
type naiveTime time.Time

func (n naiveTime) String() string {
	t := time.Time(n).UTC()
	layout := "2006-01-02T15:04:05"
	switch ns := t.Nanosecond(); {
	case ns == 0:
	case ns%1e6 == 0:
		layout += ".000"
	case ns%1e3 == 0:
		layout += ".000000"
	default:
		layout += ".000000000"
	}
	return t.Format(layout)
}

func (n naiveTime) MarshalJSON() ([]byte, error) {
	if time.Time(n).IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(n.String())
}

// permitKey is the key of a permit of a semaphore: its number, or the version of the lease
// where semaphores are fair.
func permitKey(semaphore string, slot int, holder *locks.Grant, fair bool) string {
	if fair && holder != nil {
		return semaphore + "_" + holder.Version
	}
	return fmt.Sprintf("%s_%010d", semaphore, slot)
}

var permit = regexp.MustCompile(`^(?s)(.+)_(?:([0-9]{10})|([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))$`)

// semaphoreOf takes the key of a permit apart: it has a slot or a version. ok is false if it
// is none.
func semaphoreOf(key string) (semaphore string, slot int, version string, ok bool) {
	parts := permit.FindStringSubmatch(key)
	if parts == nil {
		return "", 0, "", false
	}
	slot, err := strconv.Atoi(cmp.Or(parts[2], "0"))
	return parts[1], slot, parts[3], err == nil
}

// mutexOf is the record of a lock as a mutex, or of what one of its holders has. holder is
// nil if nobody has it.
func (p *program) mutexOf(r locks.Record, slot int, holder *locks.Grant) mutexRecord {
	locked := holder != nil
	m := mutexRecord{
		MutexKey: r.Key, TenantID: r.Tenant, Version: r.Version, LeaseDurationMS: r.Lease.Milliseconds(), Data: r.Data,
		DeleteOnRelease: &r.DeleteOnRelease, Locked: &locked,
		CreatedBy: &r.CreatedBy, CreatedAt: naiveTime(r.CreatedAt), UpdatedBy: &r.UpdatedBy, UpdatedAt: naiveTime(r.UpdatedAt),
	}
	if r.Kind == locks.Semaphore {
		m.MutexKey, m.SemaphoreKey = permitKey(r.Key, slot, holder, p.cfg.Fair), &r.Key
	}
	if holder != nil {
		m.Version, m.LeaseDurationMS, m.ExpiresAt = holder.Version, holder.Lease.Milliseconds(), naiveTime(holder.Expires)
		m.FencingToken = &holder.Fence
	}
	return m
}

func semaphoreRecordOf(r locks.Record) semaphoreRecord {
	return semaphoreRecord{
		SemaphoreKey: r.Key, TenantID: r.Tenant, Version: r.Version, MaxSize: r.Size, LeaseDurationMS: r.Lease.Milliseconds(),
		BusyCount: &r.Busy, FairSemaphore: &r.Fair,
		CreatedBy: &r.CreatedBy, CreatedAt: naiveTime(r.CreatedAt), UpdatedBy: &r.UpdatedBy, UpdatedAt: naiveTime(r.UpdatedAt),
	}
}

// print writes what a command has found: as JSON, or as a line for people.
func (p *program) print(v any, format string, args ...any) error {
	if !p.cfg.json {
		_, err := fmt.Fprintf(p.stdout, format+"\n", args...)
		return err
	}
	text, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(p.stdout, "%s\n", text)
	}
	return err
}

// String writes it for people.
func (m mutexRecord) String() string {
	text := fmt.Sprintf("key=%q version=%s tenant_id=%q locked=%v lease_duration_ms=%d", m.MutexKey, m.Version, m.TenantID, *m.Locked, m.LeaseDurationMS)
	if m.FencingToken != nil {
		text += fmt.Sprintf(" expires=%s fencing_token=%d", m.ExpiresAt, *m.FencingToken)
	}
	return text
}

// String writes it for people.
func (s semaphoreRecord) String() string {
	return fmt.Sprintf("key=%q version=%s tenant_id=%q max_size=%d busy_count=%d lease_duration_ms=%d", s.SemaphoreKey, s.Version, s.TenantID, s.MaxSize, *s.BusyCount, s.LeaseDurationMS)
}
