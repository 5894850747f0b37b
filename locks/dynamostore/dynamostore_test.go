package dynamostore_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/dynamostore"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestMain(m *testing.M) {
	lockstest.Main()
	goleak.VerifyTestMain(m)
}

func store(t testing.TB, s *servers.Server) *dynamostore.Store {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + s.Address), HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	made, err := dynamostore.New(context.Background(), client, "locks")
	require.NoError(t, err)
	return made
}

func TestTheSuite(t *testing.T) {
	server := servers.Dynalite(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return store(t, server) })
}

// TestATableThatCannotBeIsInvalid: to ask again does not help.
func TestATableThatCannotBeIsInvalid(t *testing.T) {
	server := servers.Dynalite(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	_, err := locks.Open(t.Context(), "dynamodb:ab?region=us-east-1&endpoint=http://"+server.Address)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.NotErrorIs(t, err, locks.ErrUnavailable)
}
