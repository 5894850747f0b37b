package explore

import "sync/atomic"

// touch is the point before an access to an atomic.
func touch(kind opKind, x any) {
	if active.Load() == nil {
		return
	}
	if w, g := here(); w != nil {
		w.touch(g, op{kind: kind, object: x})
	}
}

// integer is what the atomic integers of sync/atomic have in common.
type integer[T any] interface {
	Load() T
	Store(T)
	Add(T) T
	And(T) T
	Or(T) T
	Swap(T) T
	CompareAndSwap(from, to T) bool
}

// number is an atomic integer, each access to which is a point.
type number[T any, A any, P interface {
	*A
	integer[T]
}] struct{ v A }

func (x *number[T, A, P]) p() P { return P(&x.v) }

func (x *number[T, A, P]) Load() T   { touch(opLoad, x); return x.p().Load() }
func (x *number[T, A, P]) Store(n T) { touch(opStore, x); x.p().Store(n) }
func (x *number[T, A, P]) Add(n T) T { touch(opAdd, x); return x.p().Add(n) }
func (x *number[T, A, P]) And(n T) T { touch(opAdd, x); return x.p().And(n) }
func (x *number[T, A, P]) Or(n T) T  { touch(opAdd, x); return x.p().Or(n) }
func (x *number[T, A, P]) Swap(n T) T {
	touch(opSwap, x)
	return x.p().Swap(n)
}
func (x *number[T, A, P]) CompareAndSwap(from, to T) bool {
	touch(opSwap, x)
	return x.p().CompareAndSwap(from, to)
}

// The integers of sync/atomic. Each access is a point at the level [Atomics].
type (
	Int32  = number[int32, atomic.Int32, *atomic.Int32]
	Int64  = number[int64, atomic.Int64, *atomic.Int64]
	Uint32 = number[uint32, atomic.Uint32, *atomic.Uint32]
	Uint64 = number[uint64, atomic.Uint64, *atomic.Uint64]
)

// Bool is an atomic.Bool, each access to which is a point.
type Bool struct{ v atomic.Bool }

func (x *Bool) Load() bool       { touch(opLoad, x); return x.v.Load() }
func (x *Bool) Store(b bool)     { touch(opStore, x); x.v.Store(b) }
func (x *Bool) Swap(b bool) bool { touch(opSwap, x); return x.v.Swap(b) }
func (x *Bool) CompareAndSwap(from, to bool) bool {
	touch(opSwap, x)
	return x.v.CompareAndSwap(from, to)
}

// Pointer is an atomic.Pointer, each access to which is a point.
type Pointer[T any] struct{ v atomic.Pointer[T] }

func (x *Pointer[T]) Load() *T     { touch(opLoad, x); return x.v.Load() }
func (x *Pointer[T]) Store(p *T)   { touch(opStore, x); x.v.Store(p) }
func (x *Pointer[T]) Swap(p *T) *T { touch(opSwap, x); return x.v.Swap(p) }
func (x *Pointer[T]) CompareAndSwap(from, to *T) bool {
	touch(opSwap, x)
	return x.v.CompareAndSwap(from, to)
}
