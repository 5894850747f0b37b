package etcdstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

var name = locks.Name{Tenant: "acme", Key: "k"}

func request(id string, lease time.Duration) locks.Request {
	return locks.Request{ID: id, Version: "v" + id, Owner: "o" + id, Kind: locks.Mutex, Lease: lease, Wait: true}
}

func start(t *testing.T) (*Store, *servers.Server) {
	server := servers.Etcd(t)
	s, err := locks.Open(t.Context(), server.URL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store), server
}

func (s *Store) granted(t *testing.T, q locks.Request) locks.Grant {
	t.Helper()
	turn, err := s.Acquire(t.Context(), name, []locks.Request{q})
	require.NoError(t, err)
	require.NoError(t, turn.Answers[0].Err)
	require.True(t, turn.Answers[0].Granted)
	return turn.Answers[0].Grant
}

func TestALockThatNobodyElseWantsIsOneRequestToTakeAndOneToGiveBack(t *testing.T) {
	s, _ := start(t)
	s.granted(t, request("first", time.Minute))
	_, err := s.Release(t.Context(), name, locks.Ref{ID: "first"}, nil)
	require.NoError(t, err)
	c := count(s)
	s.granted(t, request("a", time.Minute))
	released, err := s.Release(t.Context(), name, locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	require.True(t, released)
	require.Zero(t, c.reads.Load())
	require.EqualValues(t, 2, c.txns.Load())
}

// TestTheTokenIsTheRevisionThatGrants also of those that are granted in one step.
func TestTheTokenIsTheRevisionThatGrants(t *testing.T) {
	s, _ := start(t)
	var all []locks.Request
	for _, id := range []string{"a", "b", "c"} {
		q := request(id, time.Minute)
		q.Kind, q.Size, q.Permits = locks.Semaphore, 3, 1
		all = append(all, q)
	}
	turn, err := s.Acquire(t.Context(), name, all)
	require.NoError(t, err)
	last := int64(0)
	for i, q := range all {
		answer, err := s.kv.Get(t.Context(), s.ofName(name)+holdKey+q.ID)
		require.NoError(t, err)
		fence := turn.Answers[i].Grant.Fence
		require.Equal(t, answer.Kvs[0].CreateRevision, fence)
		require.Greater(t, fence, last)
		last = fence
	}
	record, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, last, record.Fence)
}

// TestAGuessIsNotBelieved: somebody else has deleted what this process holds, or has it itself.
func TestAGuessIsNotBelieved(t *testing.T) {
	s, server := start(t)
	s.granted(t, request("a", time.Minute))
	_, err := s.kv.Delete(t.Context(), s.ofName(name)+holdKey+"a")
	require.NoError(t, err)
	released, err := s.Release(t.Context(), name, locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	require.False(t, released, "it was lost")

	s.granted(t, request("dead", time.Minute))
	_, err = s.kv.Delete(t.Context(), s.ofName(name)+holdKey+"dead")
	require.NoError(t, err)
	s.granted(t, request("b", time.Minute))
	_, err = s.Release(t.Context(), name, locks.Ref{ID: "b"}, nil)
	require.NoError(t, err)
	other, err := locks.Open(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	_, err = other.Acquire(t.Context(), name, []locks.Request{request("c", time.Minute)})
	require.NoError(t, err)
	turn, err := s.Acquire(t.Context(), name, []locks.Request{request("d", time.Minute)})
	require.NoError(t, err)
	require.False(t, turn.Answers[0].Granted)
	require.Equal(t, "oc", turn.Answers[0].Holder)
}

func TestAHoldWhoseKeyHasVanishedIsNotRenewed(t *testing.T) {
	s, _ := start(t)
	s.granted(t, request("a", time.Minute))
	renewal := []locks.Renewal{{Name: name, Ref: locks.Ref{ID: "a"}, Lease: time.Minute}}
	results, err := s.Renew(t.Context(), renewal)
	require.NoError(t, err)
	require.Equal(t, locks.Extended, results[0].Verdict)
	_, err = s.kv.Delete(t.Context(), s.ofName(name)+holdKey+"a")
	require.NoError(t, err)
	results, err = s.Renew(t.Context(), renewal)
	require.NoError(t, err)
	require.Equal(t, locks.NotYours, results[0].Verdict)
}

// TestARenewalSaysWhatAnotherProcessHasMadeOfTheHold: it has given it another version.
func TestARenewalSaysWhatAnotherProcessHasMadeOfTheHold(t *testing.T) {
	s, server := start(t)
	s.granted(t, request("a", time.Minute))
	other, err := locks.Open(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	renewal := locks.Renewal{Name: name, Ref: locks.Ref{ID: "a"}, Lease: time.Minute, NewVersion: "second"}
	_, err = other.Renew(t.Context(), []locks.Renewal{renewal})
	require.NoError(t, err)
	renewal.NewVersion = ""
	for range 2 {
		results, err := s.Renew(t.Context(), []locks.Renewal{renewal})
		require.NoError(t, err)
		require.Equal(t, "second", results[0].Grant.Version)
	}
}

// TestALeaseThatEtcdHasEndedIsNotedAndReplaced: this process stood still for longer than it.
func TestALeaseThatEtcdHasEndedIsNotedAndReplaced(t *testing.T) {
	s, _ := start(t)
	s.granted(t, request("a", time.Minute))
	lease, err := s.leases.use(t.Context(), 60)
	require.NoError(t, err)
	_, err = s.client.Revoke(t.Context(), lease)
	require.NoError(t, err)
	results, err := s.Renew(t.Context(), []locks.Renewal{{Name: name, Ref: locks.Ref{ID: "a"}, Lease: time.Minute}})
	require.NoError(t, err)
	require.Equal(t, locks.NotYours, results[0].Verdict)
	s.granted(t, request("b", time.Minute))
}

// TestWhatNobodyRenewsEndsThoughItsLeaseGoesOnForOthers also when the process renews others.
func TestWhatNobodyRenewsEndsThoughItsLeaseGoesOnForOthers(t *testing.T) {
	s, _ := start(t)
	for i := 0; !s.endsBeside(t, fmt.Sprint(i)); i++ {
		t.Log("the machine is slow: what is renewed has ended, once more")
	}
}

// endsBeside has a lease end beside one that is renewed. It is false if that one was not renewed in time.
func (s *Store) endsBeside(t *testing.T, id string) bool {
	const lease = 2 * time.Second
	kept, ends := locks.Name{Tenant: "acme", Key: "kept" + id}, locks.Name{Tenant: "acme", Key: "ends" + id}
	renewed := time.Now()
	_, err := s.Acquire(t.Context(), kept, []locks.Request{request("kept", lease)})
	require.NoError(t, err)
	turn, err := s.Acquire(t.Context(), ends, []locks.Request{request("a", lease)})
	require.NoError(t, err)
	require.True(t, turn.Answers[0].Granted)
	first := turn.Answers[0].Grant
	turn = locks.Turn{}
	for !(len(turn.Answers) > 0 && turn.Answers[0].Granted) {
		sent := time.Now()
		results, err := s.Renew(t.Context(), []locks.Renewal{{Name: kept, Ref: locks.Ref{ID: "kept"}, Lease: lease}})
		require.NoError(t, err)
		extended, slow := results[0].Verdict == locks.Extended, time.Since(renewed) >= lease
		if require.True(t, extended || slow); !extended {
			return false
		}
		renewed = sent
		turn, err = s.Acquire(t.Context(), ends, []locks.Request{request("b", time.Minute)})
		require.NoError(t, err)
		time.Sleep(20 * time.Millisecond)
	}
	require.False(t, turn.Answers[0].Grant.Acquired.Before(first.Expires))
	return true
}

// TestAKeyBelowThePrefixThatIsOfNobodyIsPassedOver where it stands before the locks and after them.
func TestAKeyBelowThePrefixThatIsOfNobodyIsPassedOver(t *testing.T) {
	s, _ := start(t)
	s.granted(t, request("a", time.Minute))
	for _, key := range []string{"a", "z"} {
		_, err := s.kv.Put(t.Context(), s.ofTenant(name.Tenant)+key, "else")
		require.NoError(t, err)
	}
	records, err := s.List(t.Context(), name.Tenant, "", 10)
	require.NoError(t, err)
	require.Len(t, records, 1)
	_, err = s.Purge(t.Context(), name.Tenant, 10)
	require.NoError(t, err)
}

func TestErrorsAreClassed(t *testing.T) {
	for _, err := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrAuthFailed} {
		require.ErrorIs(t, classed(t.Context(), err), locks.ErrValidation, err)
		require.NotErrorIs(t, classed(t.Context(), err), locks.ErrUnavailable, err)
	}
	lost := status.Error(codes.Unavailable, "EOF")
	for _, err := range []error{lost, rpctypes.ErrLeaderChanged, rpctypes.ErrNoSpace, context.Canceled} {
		require.ErrorIs(t, classed(t.Context(), err), locks.ErrUnavailable, err)
	}
}

func TestAnOldEtcdIsRefused(t *testing.T) {
	for version, fits := range map[string]bool{"3.4.30": false, "3.5.99": false, "3.6.0": true, "3.10.1": true, "4.0.0": true} {
		if err := supported(version); fits {
			require.NoError(t, err, version)
		} else {
			require.ErrorIs(t, err, locks.ErrValidation, version)
		}
	}
}

func TestURLs(t *testing.T) {
	config, prefix, err := parse("etcd://us%40er:p%2Fw@a:1,b:2/team/locks?x=y")
	require.NoError(t, err)
	require.Equal(t, []string{"http://a:1", "http://b:2"}, config.Endpoints)
	require.Equal(t, []string{"us@er", "p/w", "team/locks"}, []string{config.Username, config.Password, prefix})
	for _, raw := range []string{"etcd:", "etcd://", "etcd:///x", "etcd://%zz@a:1", "etcds://a:1?ca=/no/such/file"} {
		_, _, err := parse(raw)
		require.ErrorIs(t, err, locks.ErrValidation, raw)
	}
}

func TestARecordOfAnotherFormatIsRefused(t *testing.T) {
	s, _ := start(t)
	for _, text := range []string{`{"f":1,"k":1}`, `{"Format":99,"Kind":1}`} {
		_, err := s.client.Put(t.Context(), s.ofName(name)+recordKey, text)
		require.NoError(t, err)
		_, err = s.Get(t.Context(), name)
		var wrong *locks.ValidationError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, "and this program knows 2")
		_, err = s.Acquire(t.Context(), name, []locks.Request{{ID: "a"}})
		require.ErrorAs(t, err, &wrong)
	}
}
