package dynamostore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/alone"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// Acquire is a method of locks.Store.
func (s *Store) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (turn locks.Turn, err error) {
	for i := range requests {
		if q := &requests[i]; q.Kind == locks.ReadWrite || q.Permits > 1 {
			return turn, &locks.ValidationError{What: "store", Why: "DynamoDB has no read-write locks, and no requests for several permits"}
		}
	}
	err = s.step(ctx, name, func(now int64, r *book.Resource) bool {
		turn = r.Acquire(now, "", requests)
		return true
	})
	return turn, err
}

// Release is a method of locks.Store.
func (s *Store) Release(ctx context.Context, name locks.Name, ref locks.Ref, data *string) (released bool, err error) {
	done := false // by a try before, whose answer was lost, or said that the clock had jumped
	err = s.step(ctx, name, func(now int64, r *book.Resource) bool {
		released = r.Release(now, ref, data)
		changed := released
		released = released || done
		done = released
		return changed
	})
	return released, err
}

// together is how many leases are renewed at the same time: each is two requests.
const together = 64

// Renew is a method of locks.Store. Each lease is a step of its own, 64 at a time. One
// that could not be reached is Skipped.
func (s *Store) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	return alone.Renew(ctx, len(renewals), together, func(ctx context.Context, i int) (result locks.RenewResult, err error) {
		q := &renewals[i]
		err = s.step(ctx, q.Name, func(now int64, r *book.Resource) bool {
			result = r.Renew(now, q)
			return result.Verdict == locks.Extended
		})
		return result, err
	})
}

// Listen tells of what this process gives back itself.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) { return s.board.Listen(name) }

// Create is a method of locks.Store.
func (s *Store) Create(ctx context.Context, record locks.Record) (made locks.Record, err error) {
	var refused error
	err = s.step(ctx, record.Name, func(now int64, r *book.Resource) bool {
		if refused = r.Create(now, &record); refused == nil {
			made, refused = r.Record(now)
		}
		return refused == nil
	})
	return made, cmp.Or(err, refused)
}

// Get is a method of locks.Store.
func (s *Store) Get(ctx context.Context, name locks.Name) (record locks.Record, err error) {
	var refused error
	err = s.step(ctx, name, func(now int64, r *book.Resource) bool {
		record, refused = r.Record(now)
		return false
	})
	return record, cmp.Or(err, refused)
}

// Delete is a method of locks.Store.
func (s *Store) Delete(ctx context.Context, name locks.Name, version string) error {
	var refused error
	done := false // by a try before, whose answer was lost
	err := s.step(ctx, name, func(now int64, r *book.Resource) bool {
		if done && !r.Exists {
			return false
		}
		refused = r.Delete(now, version)
		done = refused == nil
		return done
	})
	return cmp.Or(err, refused)
}

// Revoke is a method of locks.Store.
func (s *Store) Revoke(ctx context.Context, name locks.Name, ref locks.Ref, force bool) (n int, err error) {
	err = s.step(ctx, name, func(now int64, r *book.Resource) bool {
		shut, entries := r.Shut, len(r.Entries)
		changed := r.Revoke(now, ref, force)
		n = max(n, changed)
		return changed > 0 || shut != r.Shut || entries != len(r.Entries)
	})
	return n, err
}

// Purge is a method of locks.Store. It reads the whole table, and is the only way by which
// unused records go: DynamoDB cannot find them otherwise.
func (s *Store) Purge(ctx context.Context, tenant string, most int) (purged int, err error) {
	for after := ""; purged < most; {
		page, err := s.List(ctx, tenant, after, 1000)
		if err != nil || len(page) == 0 {
			return purged, err
		}
		for i := range page {
			after = page[i].Key
			gone := false
			err := s.step(ctx, page[i].Name, func(now int64, r *book.Resource) bool {
				if gone = gone && !r.Exists; gone {
					return false // by a try before
				}
				due := r.Due
				gone = r.Purge(now)
				return gone || r.Due != due
			})
			if err != nil {
				return purged, err
			}
			if gone {
				purged++
			}
		}
	}
	return purged, nil
}

// List is a method of locks.Store. It reads the whole table, as DynamoDB has no order of
// its keys here.
func (s *Store) List(ctx context.Context, tenant, after string, most int) ([]locks.Record, error) {
	var records []locks.Record
	in := &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		FilterExpression:          aws.String("tenant = :tenant AND attribute_not_exists(gone)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":tenant": &types.AttributeValueMemberB{Value: []byte(tenant)}},
	}
	for {
		sent := s.clock.local()
		out, err := s.client.Scan(ctx, in)
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		s.seen(out.ResultMetadata, sent)
		lower, _, _ := s.clock.bounds()
		for _, attrs := range out.Items {
			if records, err = listed(records, attrs, tenant, after, lower); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(records, func(a, b locks.Record) int { return cmp.Compare(a.Key, b.Key) })
		records = records[:min(most, len(records))]
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return records, nil
		}
	}
}

// listed adds the record of an item that belongs into the list.
func listed(records []locks.Record, attrs map[string]types.AttributeValue, tenant, after string, now time.Time) ([]locks.Record, error) {
	name := locks.Name{Tenant: tenant, Key: string(toBytes(attrs["key"]))}
	if after != "" && name.Key <= after {
		return records, nil
	}
	it, err := decode(name, attrs)
	if err != nil {
		return nil, err
	}
	if r, err := it.r.Record(book.Micros(now)); err == nil {
		r.Holders = nil
		records = append(records, r)
	}
	return records, nil
}
