//go:build unix

package proc

import (
	"io"
	"reflect"
	"unsafe"
)

// same reports whether a and b are one writer: they are equal, or copies of one
// value. The latter is for values that cannot be compared, such as a struct with
// a function in it; == would panic. Two copies write to the same place, whatever
// their type is: all that they can know is the same.
func same(a, b io.Writer) bool {
	return a != nil && (equal(a, b) || copies(reflect.TypeFor[io.Writer](), unsafe.Pointer(&a), unsafe.Pointer(&b)))
}

// equal is ==, and false where that panics.
func equal(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

// copies reports whether two values of type t hold the same. Functions, maps,
// slices and channels do if they are the very same, not if they look alike: so
// two closures of one function are different.
func copies(t reflect.Type, p, q unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			if f.Name != "_" && !copies(f.Type, unsafe.Add(p, f.Offset), unsafe.Add(q, f.Offset)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range t.Len() {
			at := uintptr(i) * t.Elem().Size()
			if !copies(t.Elem(), unsafe.Add(p, at), unsafe.Add(q, at)) {
				return false
			}
		}
		return true
	case reflect.Interface:
		x, y := reflect.NewAt(t, p).Elem().Elem(), reflect.NewAt(t, q).Elem().Elem()
		if !x.IsValid() || !y.IsValid() {
			return !x.IsValid() && !y.IsValid()
		}
		return x.Type() == y.Type() && copies(x.Type(), addressed(x), addressed(y))
	case reflect.String:
		return *(*string)(p) == *(*string)(q)
	default: // words without holes: numbers, pointers, functions, maps, slices, channels
		return string(unsafe.Slice((*byte)(p), t.Size())) == string(unsafe.Slice((*byte)(q), t.Size()))
	}
}

// addressed returns where a copy of v is.
func addressed(v reflect.Value) unsafe.Pointer {
	at := reflect.New(v.Type())
	at.Elem().Set(v)
	return at.UnsafePointer()
}
