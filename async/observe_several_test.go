package async_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// A named observer notes under its name what it is told, in a list that others write to, too.
type named struct {
	name string
	told *[]string
}

func (n *named) Observe(e async.Event) {
	*n.told = append(*n.told, n.name+" "+e.Task+" "+e.Kind.String())
}

// Each of several observers of a scope is told, in the order of the options, and before those of the scopes around it.
func TestEachOfSeveralObserversIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var told []string
		option := func(name string) async.ScopeOption { return async.Observe(&named{name, &told}) }
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return nil }, async.Name("task"))
				return nil
			}, option("c"), option("d"), async.Name("inner"))
		}, option("a"), async.Profile(), option("b")))
		require.Equal(t, []string{
			"a inner start", "b inner start", "c task start", "d task start", "a task start", "b task start",
			"c task end", "d task end", "a task end", "b task end", "a inner end", "b inner end",
		}, told)
	})
}

// An observer that several scopes have is told of each task once.
func TestAnObserverOfSeveralScopesIsToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var told []string
		g := new(giver)
		one := &named{"one", &told}
		var value string
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { value = givenIn(ctx); return nil }, async.Name("task"))
				return nil
			}, async.Observe(one), async.Observe(g), async.Name("inner"))
		}, async.Observe(one), async.Observe(one), async.Observe(g)))
		require.Equal(t, []string{"one inner start", "one task start", "one task end", "one inner end"}, told)
		require.Equal(t, "/inner/task", value)
	})
}
