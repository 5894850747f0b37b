package dynamostore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// raise writes the floor of the bucket of a lock.
func raise(t testing.TB, s *servers.Server, name locks.Name, token int64) {
	item := map[string]types.AttributeValue{
		"pk":    &types.AttributeValueMemberB{Value: fmt.Appendf(nil, "floor:%d", book.Bucket(name))},
		"fence": &types.AttributeValueMemberN{Value: fmt.Sprint(token)},
	}
	_, err := client(t, s).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item})
	require.NoError(t, err)
}

func TestATokenFromTheFutureKeepsNoLeaseFromEnding(t *testing.T) {
	t.Parallel()
	server := servers.Dynalite(t)
	f := lockstest.NewFixture(t, func(t testing.TB) locks.Store { return store(t, server) })
	f.Ahead(func(name locks.Name, token int64) { raise(t, server, name, token) })
}

// A record that is deleted leaves its token behind, which is greater than the time here.
func TestTokensGoOnWhenARecordWasDeletedWhoseTokenIsAheadOfTheTime(t *testing.T) {
	server := servers.Dynalite(t)
	s := store(t, server)
	name, other := locks.Name{Tenant: "t", Key: "k"}, locks.Name{Tenant: "t", Key: "0"}
	for i := 1; book.Bucket(other) != book.Bucket(name); i++ {
		other.Key = fmt.Sprint(i)
	}
	last := time.Now().Add(time.Hour).UnixMicro()
	raise(t, server, name, last)
	for i := range 6 { // of one bucket, by turns
		q := locks.Request{ID: fmt.Sprint(i), Version: "v", Kind: locks.Mutex, Lease: time.Minute, DeleteOnRelease: true}
		of := []locks.Name{name, other}[i%2]
		turn, err := s.Acquire(t.Context(), of, []locks.Request{q})
		require.NoError(t, err)
		require.Greater(t, turn.Answers[0].Grant.Fence, last)
		last = turn.Answers[0].Grant.Fence
		released, err := s.Release(t.Context(), of, locks.Ref{ID: q.ID}, nil)
		require.NoError(t, err)
		require.True(t, released)
	}
	items, err := client(t, server).Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")})
	require.NoError(t, err)
	require.Len(t, items.Items, 1, "the floor is all that is left")
}
