package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ambit-go/ambit/locks/internal/book"
)

// This file keeps the tokens of records that are gone. An item "floor:N" has in fence the
// greatest token that a deleted record of a bucket has had.

func floorKey(it item) map[string]types.AttributeValue {
	text := fmt.Appendf(nil, "floor:%d", book.Bucket(it.r.Name)) // keys of locks begin with a digit
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberB{Value: text}}
}

// ready makes an item in which a record may be made. First the item is there, so that nobody
// deletes it in between, then the floor is read: whoever has deleted a record before has raised
// it by then. An item that was made ready by a process that died is found by the next.
func (s *Store) ready(ctx context.Context, it item, now time.Time) (_ item, ok bool, err error) {
	if it.rev == 0 {
		rev := 1 + rand.Int64N(1<<52) // another than that of an item which somebody has read and which is deleted since
		if ok, _, err := s.put(ctx, it, rev, now); !ok || err != nil {
			return it, false, err
		}
		it.rev = rev
	}
	sent := s.clock.local()
	in := &dynamodb.GetItemInput{TableName: &s.table, Key: floorKey(it), ConsistentRead: aws.Bool(true)}
	out, err := s.client.GetItem(ctx, in)
	if err != nil {
		return it, false, unavailable(ctx, err)
	}
	s.seen(out.ResultMetadata, sent)
	it.r.Fence, it.ready = max(it.r.Fence, toNumber(out.Item["fence"])), true
	return it, true, nil
}

// remove deletes an item if nobody else has written it since. The floor is raised before: a
// token that stays behind for nothing does no harm.
func (s *Store) remove(ctx context.Context, it item) (ok bool, err error) {
	fence := map[string]types.AttributeValue{":fence": number(it.r.Fence)}
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: floorKey(it), UpdateExpression: aws.String("SET fence = :fence"),
		ConditionExpression:       aws.String("attribute_not_exists(fence) OR fence < :fence"),
		ExpressionAttributeValues: fence,
	})
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) {
		return false, unavailable(ctx, err)
	}
	_, err = s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: map[string]types.AttributeValue{"pk": key(it.r.Name)},
		ConditionExpression:       aws.String("rev = :rev"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":rev": number(it.rev)},
	})
	if errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, unavailable(ctx, err)
}
