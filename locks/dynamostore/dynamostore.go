// Package dynamostore is a locks.Store on DynamoDB. A lock is one item, and every step
// reads it, decides and writes it back on the condition that nobody else has written it
// meanwhile.
//
// DynamoDB tells the time by the Date of its answers alone, in whole seconds. So leases
// are 5 s or more here, and a lease that nobody renews ends up to three seconds late.
// There are no read-write locks, no requests for several permits, and no hints: those who
// wait ask again.
package dynamostore

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/hint"
	"github.com/ambit-go/ambit/locks/internal/pause"
	"github.com/ambit-go/ambit/locks/internal/turns"
)

// A Store keeps locks in a table of DynamoDB.
type Store struct {
	client *dynamodb.Client
	table  string
	clock  clock
	turns  turns.Turns
	board  hint.Board[locks.Name] // for the locks that this process gives back itself
}

var _ locks.Store = (*Store)(nil)

// New returns the store in a table, which it makes if it is not there (with requests paid
// one by one) and waits for. Have the attribute "gone" be the table's time to live, for items
// that a process which died has left without a record.
func New(ctx context.Context, client *dynamodb.Client, table string) (*Store, error) {
	if client == nil {
		return nil, &locks.ValidationError{What: "store", Why: "the client is nil: make it with dynamodb.NewFromConfig"}
	}
	s := &Store{client: client, table: table, clock: clock{now: time.Now}}
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func init() {
	for _, scheme := range []string{"dynamodb", "ddb"} {
		locks.Register(scheme, open)
	}
}

// open returns the store at "dynamodb:TABLE?region=R&endpoint=URL". A setting that is left out comes
// from the environment and the files of the AWS command line.
func open(ctx context.Context, raw string) (locks.Store, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &locks.ValidationError{What: "store", Why: "write it as dynamodb:TABLE?region=REGION"}
	}
	table := strings.Trim(u.Opaque+u.Host+u.Path, "/")
	if table == "" {
		return nil, &locks.ValidationError{What: "store", Why: "the URL names no table: write it as dynamodb:TABLE?region=REGION"}
	}
	var opts []func(*config.LoadOptions) error
	if region := u.Query().Get("region"); region != "" {
		opts = append(opts, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, locks.Unavailable(err)
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	})
	return New(ctx, client, table)
}

// create makes the table if it is not there.
func (s *Store) create(ctx context.Context) error {
	_, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		_, err = s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName:            &s.table,
			BillingMode:          types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeB}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		})
		var raced *types.ResourceInUseException
		if errors.As(err, &raced) {
			err = nil // somebody else makes it
		}
	}
	if err != nil {
		return unavailable(ctx, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(s.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	return unavailable(ctx, waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, 2*time.Minute))
}

// never are what the server says to what it will not do however often it is asked.
var never = []string{
	"ValidationException", "AccessDeniedException", "UnrecognizedClientException", "MissingAuthenticationTokenException",
	"IncompleteSignatureException", "InvalidSignatureException",
}

// unavailable says that a request may have been carried out or not.
func unavailable(ctx context.Context, err error) error {
	var said smithy.APIError
	if errors.As(err, &said) && slices.Contains(never, said.ErrorCode()) {
		return locks.Invalid(err)
	}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return locks.Unavailable(err)
}

// seen has the clock learn from an answer.
func (s *Store) seen(m middleware.Metadata, sent time.Duration) time.Time {
	date, ok := awsmiddleware.GetServerTime(m)
	if !ok {
		return time.Time{}
	}
	s.clock.saw(date, sent)
	return date
}

// read gets the item of a lock as it is now.
func (s *Store) read(ctx context.Context, name locks.Name) (item, error) {
	sent := s.clock.local()
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: map[string]types.AttributeValue{"pk": key(name)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return item{}, unavailable(ctx, err)
	}
	s.seen(out.ResultMetadata, sent)
	return decode(name, out.Item)
}

// unused is how long an item without a record is kept, in which nobody has made one.
const unused = 24 * time.Hour

// put writes an item back under a new revision if nobody else has. date is that of the answer.
func (s *Store) put(ctx context.Context, it item, rev int64, now time.Time) (ok bool, date time.Time, err error) {
	b, err := encode(it.r)
	if err != nil {
		return false, date, err
	}
	in := &dynamodb.PutItemInput{
		TableName: &s.table,
		Item: map[string]types.AttributeValue{
			"pk": key(it.r.Name), "rev": number(rev), "format": number(format), "book": &types.AttributeValueMemberB{Value: b},
			"tenant": &types.AttributeValueMemberB{Value: []byte(it.r.Tenant)}, "key": &types.AttributeValueMemberB{Value: []byte(it.r.Key)},
		},
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
	if it.rev != 0 {
		in.ConditionExpression = aws.String("rev = :rev")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":rev": number(it.rev)}
	}
	if !it.r.Exists {
		in.Item["gone"] = number(now.Add(unused).Unix())
	}
	sent := s.clock.local()
	out, err := s.client.PutItem(ctx, in)
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return false, date, nil
	}
	if err != nil {
		return false, date, unavailable(ctx, err)
	}
	return true, s.seen(out.ResultMetadata, sent), nil
}

// margin is how much longer than its time a lease is kept: for clocks of servers of the
// database that differ.
const margin = time.Second

// step reads a lock, has f change it, and writes it back, again and again until nobody
// has come between. f says whether it may have changed anything. It may be called several
// times, so it sets what it returns anew each time; a step is named by the IDs that its
// caller has made, so one that was done already does no harm.
func (s *Store) step(ctx context.Context, name locks.Name, f func(now int64, r *book.Resource) bool) error {
	give, err := s.turns.Take(ctx, name)
	if err != nil {
		return err
	}
	defer give()
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return locks.Unavailable(context.Cause(ctx))
		}
		it, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		if done, err := s.change(ctx, it, f); done || err != nil {
			return err
		}
		pause.Before(ctx, try, 3*time.Millisecond)
	}
}

// change has f change an item that was read, and writes it. done is false if somebody else
// has written it since.
//
// If the server's clock is beyond the latest that was thought possible, leases would end too
// early. The step is then taken anew, from what was there before it, so that it is one step
// however often it is written: a request would meet what others of the same step have
// changed.
func (s *Store) change(ctx context.Context, it item, f func(now int64, r *book.Resource) bool) (done bool, err error) {
	for written := false; ; written = true { // what was written is replaced, whatever the step comes to now
		lower, upper, ok := s.clock.bounds()
		if !ok {
			return false, locks.Unavailable(errors.New("the answers of the server have no Date"))
		}
		now, after := book.Micros(lower), it.copy()
		after.r.Slack = int64((upper.Sub(lower) + margin) / time.Microsecond)
		if !f(now, after.r) || !written && it.same(after.r) {
			return true, nil
		}
		switch {
		case after.r.Exists && !it.r.Exists && !it.ready:
			var ok bool
			if it, ok, err = s.ready(ctx, it, upper); !ok || err != nil {
				return false, err
			}
			continue
		case !after.r.Exists:
			return s.remove(ctx, after)
		}
		ok, date, err := s.put(ctx, after, it.rev+1, upper)
		if !ok || err != nil {
			return false, err
		}
		if !date.After(upper) {
			if len(after.r.Wake(now)) > 0 {
				s.board.Hint(it.r.Name)
			}
			return true, nil
		}
		it.rev++
	}
}

// Traits says what DynamoDB cannot do.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "dynamodb", MinLease: 5 * time.Second, Simple: true}
}

// Close does nothing: the client is its caller's.
func (s *Store) Close() error { return nil }
