//go:build linux

package etcdtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// clusterAt opens the store of a cluster with these endpoints, with a client of its own. It does not wait for long for a member
// that stands still.
func clusterAt(endpoints string) proof.Opener {
	return clusterFor(endpoints, etcdkv.Timeout(2*time.Second))
}

func clusterFor(endpoints string, timeout etcdkv.Option) proof.Opener {
	return func(context.Context) (kvqueue.KV, func(), error) {
		client, err := etcdtest.NewClient(strings.Split(endpoints, ","))
		if err != nil {
			return nil, nil, err
		}
		return etcdkv.New(client, timeout), func() { _ = client.Close() }, nil
	}
}

// Processes use a queue at random, while transactions go wrong, and they and the members of
// the cluster are killed with kill -9 and stopped. The auditors see every transaction.
func TestRandomProgramsOfProcesses(t *testing.T) {
	for _, members := range []int{1, 3} {
		for seed := range uint64(members+1) / 2 {
			t.Run(fmt.Sprintf("%d members, %d", members, seed), func(t *testing.T) {
				cluster := etcdtest.Start(t, members)
				endpoints := strings.Join(cluster.Endpoints(), ",")
				proof.Program{
					Seed: seed, Store: endpoints, Open: clusterFor(endpoints, patient), Watch: clusterAt(endpoints),
					TTL: 2 * time.Second, Second: 50 * time.Millisecond,
					Workers: 4, Steps: 6, Every: 120,
					Happens: []func(*testing.T, *proof.Dice) (string, func()){
						func(t *testing.T, d *proof.Dice) (string, func()) { return killMember(t, cluster, d) },
						func(t *testing.T, d *proof.Dice) (string, func()) { return stopMember(t, cluster, d) },
					},
				}.Run(t)
			})
		}
	}
}

// killMember kills a member. If there are others it comes back later, else at once.
func killMember(t *testing.T, c *etcdtest.Cluster, d *proof.Dice) (string, func()) {
	m := c.Members[d.N(len(c.Members))]
	m.Kill()
	start := func() { assert.NoError(t, m.Start()) }
	if len(c.Members) == 1 {
		start()
		return "killed the member, and started it", nil
	}
	return "killed member " + m.Name, start
}

// stopMember has a member stand still for a while.
func stopMember(t *testing.T, c *etcdtest.Cluster, d *proof.Dice) (string, func()) {
	m := c.Members[d.N(len(c.Members))]
	assert.NoError(t, m.Stop())
	goOn := func() { assert.NoError(t, m.Continue()) }
	if len(c.Members) == 1 {
		d.Pause(t.Context(), time.Second)
		goOn()
		return "stopped the member for a while", nil
	}
	return "stopped member " + m.Name, goOn
}

// There is an order of what handles in this process have done, while transactions go wrong,
// and a member is killed, and another stopped.
func TestHistoriesOnClustersAreLinearizable(t *testing.T) {
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) {
			cluster := etcdtest.Start(t, members)
			h := proof.NewHistory(uint64(members))
			h.Steady = true
			store := func() kvqueue.KV { return etcdkv.New(cluster.Client(t), etcdkv.Timeout(2*time.Second)) }
			var clients []*proof.Client
			for i := range 3 {
				c, err := proof.NewClient(t.Context(), h, fmt.Sprint(i), proof.NewDice(uint64(i)), store(), func(kv kvqueue.KV) kvqueue.KV {
					faulty := memkv.NewFaulty(kv, h.Faults)
					t.Cleanup(faulty.Wait)
					return faulty
				}, proof.Limits(kvqueue.TTL(time.Hour))...)
				require.NoError(t, err)
				c.Second, c.Groups, c.IDs = 100*time.Millisecond, 2, 4
				clients = append(clients, c)
			}
			h.Record(t, etcdkv.New(cluster.Client(t), patient), clients, 6, func(ctx context.Context) {
				for i, happens := range []func(*testing.T, *etcdtest.Cluster, *proof.Dice) (string, func()){killMember, stopMember} {
					if h.Steps(ctx, 15*(2*i+1)) != nil {
						return
					}
					_, undo := happens(t, cluster, proof.NewDice(uint64(i)))
					if undo != nil {
						_ = h.Steps(ctx, 15*(2*i+2))
						undo()
					}
				}
			})
			h.Check(t)
		})
	}
}

// Processes are killed with kill -9, or stand still for longer than their sessions live, in the
// middle of a claim.
func TestHistoriesOfProcessesThatDieAreLinearizable(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	proof.Tellers{
		Seed: 1, Store: endpoints, Open: clusterFor(endpoints, patient), TTL: shortTTL, Second: 100 * time.Millisecond,
		Workers: 3, Each: 5, Strikes: 4,
	}.Run(t)
}
