package top

import "unicode/utf8"

// sequences are the keys that send more than one byte.
var sequences = map[string]string{
	"[A": "up", "OA": "up", "[B": "down", "OB": "down",
	"[5~": "pageup", "[6~": "pagedown",
	"[H": "home", "OH": "home", "[1~": "home", "[7~": "home",
	"[F": "end", "OF": "end", "[4~": "end", "[8~": "end",
	"[Z": "backtab", "[C": "right", "OC": "right", "[D": "left", "OD": "left",
}

// typed returns the names of the keys in what was read at once: a character, or one of
// the names above. Sequences that are not known are left out whole.
func typed(b []byte) (keys []string) {
	for len(b) > 0 {
		if b[0] == 0x1b {
			n := sequence(b)
			if name := sequences[string(b[1:n])]; name != "" {
				keys = append(keys, name)
			} else if n == 1 {
				keys = append(keys, "escape")
			}
			b = b[n:]
			continue
		}
		_, n := utf8.DecodeRune(b)
		keys = append(keys, string(b[:n]))
		b = b[n:]
	}
	return keys
}

// sequence returns the length of the sequence that b begins with.
func sequence(b []byte) int {
	switch {
	case len(b) == 1 || b[1] != '[' && b[1] != 'O':
		return 1
	case b[1] == 'O':
		return min(3, len(b))
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return i + 1
		}
	}
	return len(b)
}
