package tally

import "reflect"

// Same reports whether two errors, or two values of panics, are the same one. It compares by identity
// and calls no method of theirs. Values that cannot be compared, such as a
// slice in a struct, are the same if they share what they hold: the contents
// are not read, because somebody may be writing them.
func Same(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	t := reflect.TypeOf(a)
	if t != reflect.TypeOf(b) {
		return false
	}
	if t.Kind() == reflect.Pointer {
		return a == b // most often
	}
	return identical(reflect.ValueOf(a), reflect.ValueOf(b))
}

// identical is == for values of one type, extended to those that have none.
func identical(a, b reflect.Value) bool {
	if a.Comparable() && b.Comparable() {
		return a.Equal(b)
	}
	switch a.Kind() {
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer()
	case reflect.Map, reflect.Func:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Interface:
		a, b = a.Elem(), b.Elem()
		return a.IsValid() && b.IsValid() && a.Type() == b.Type() && identical(a, b)
	case reflect.Struct:
		for i := range a.NumField() {
			if !identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range a.Len() {
			if !identical(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
