package look_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async/internal/look"
)

type object struct{ ready, end chan struct{} }

//go:noinline
func (o *object) wait() {
	close(o.ready)
	<-o.end
	runtime.KeepAlive(o)
}

func newObject() *object { return &object{make(chan struct{}), make(chan struct{})} }

var byReceiver = look.Shown{By: "look_test.(*object).wait("}

func TestALookFindsEachObjectOnItsStack(t *testing.T) {
	one, two := newObject(), newObject()
	for _, o := range []*object{one, two} {
		go o.wait()
		<-o.ready
		defer close(o.end)
	}
	l := look.For([]*object{one, two}, byReceiver)
	assert.Contains(t, l.StackOf(one), "(*object).wait")
	assert.Contains(t, l.StackOf(two), "(*object).wait")
	assert.NotEqual(t, l.StackOf(one), l.StackOf(two), "each has a goroutine of its own")
	assert.Empty(t, l.StackOf(newObject()), "it is on no stack")
	assert.Contains(t, l.With("look_test.TestALookFindsEachObjectOnItsStack"), "goroutine")
	assert.Empty(t, l.With(""))
	assert.Empty(t, l.With("no such frame"))
}

func TestLooksOfOneMomentAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands still, so a look stays young
		first, second := newObject(), newObject()
		go first.wait()
		synctest.Wait()
		before := look.Count()
		one := look.For([]*object{first}, byReceiver)
		assert.NotEmpty(t, one.StackOf(first))
		again := look.For([]*object{first}, byReceiver)
		runtime.KeepAlive(one) // else a collection between the two takes it
		assert.Equal(t, before+1, look.Count(), "the second question is answered by the same look")
		go second.wait()
		synctest.Wait()
		assert.NotEmpty(t, look.For([]*object{second}, byReceiver).StackOf(second), "the look before does not show it")
		assert.Equal(t, before+2, look.Count())
		assert.Empty(t, again.StackOf(second))
		close(first.end)
		close(second.end)
	})
}
