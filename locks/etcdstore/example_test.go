package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/etcdstore"
)

func Example() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{"localhost:2379"},
		DialKeepAliveTime:    10 * time.Second, // a member that stands still is noticed
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	store, err := etcdstore.New(ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	m, err := locks.New(store)
	if err != nil {
		log.Fatal(err)
	}
	err = m.With(ctx, "invoice/42", func(ctx context.Context) error {
		fmt.Println("nobody else has invoice/42; the token is", locks.From(ctx).Token())
		return nil
	})
	if err = errors.Join(err, store.Close(), client.Close()); err != nil {
		log.Fatal(err)
	}
}
