package redisstore

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ambit-go/ambit/taskqueue"
)

// clients make a client for a URL of each scheme: of one server, of the master that sentinels know,
// and of a cluster.
//
//	redis://user:password@host:6379/0
//	redis+sentinel://user:password@sentinel1:26379/0?master_name=mymaster&addr=sentinel2:26379
//	redis+cluster://user:password@node1:6379?addr=node2:6379
//
// With rediss in place of redis it is TLS. The user and the password are those of the servers; those of
// sentinels are asked for nothing.
var clients = map[string]func(text string) (redis.UniversalClient, error){
	"redis": oneServer, "rediss": oneServer, "unix": oneServer,
	"redis+sentinel": sentinels, "rediss+sentinel": sentinels,
	"redis+cluster": aCluster, "rediss+cluster": aCluster,
}

func init() {
	for scheme := range clients {
		taskqueue.Register(scheme, open)
	}
}

// Without ContextTimeoutEnabled a call on a connection that has gone silent lasts as long as all that
// the client reads and tries again, whatever its context says.

func oneServer(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

func sentinels(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(text)
	if err == nil && o.MasterName == "" {
		err = errors.New("it names no master: add ?master_name=mymaster")
	}
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	return redis.NewFailoverClient(o), nil
}

func aCluster(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

// newClient returns a client for a URL. It may have a password, so what cannot be read is not repeated:
// a part of the password may be what looks wrong.
func newClient(text string) (redis.UniversalClient, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return nil, &taskqueue.InvalidError{What: "store", Why: "the URL cannot be read: write it as redis://user:password@host:port/database; " +
			"in the password write what is neither a letter nor a digit as %XX, a slash as %2F"}
	}
	_, kind, _ := strings.Cut(u.Scheme, "+")
	client, err := clients[u.Scheme](strings.Replace(text, "+"+kind+":", ":", 1))
	if err != nil {
		return nil, &taskqueue.InvalidError{What: "store", Why: strings.TrimPrefix(err.Error(), "redis: ")}
	}
	return client, nil
}

// open returns the store at a URL, with a client of its own.
func open(ctx context.Context, text string) (taskqueue.Store, error) {
	client, err := newClient(text)
	if err != nil {
		return nil, err
	}
	s, err := New(ctx, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.own = client
	return s, nil
}
