#!/usr/bin/env bash
# Runs every fuzz target of the module in the current directory.
# Usage: fuzz.sh TIME, where TIME is what go test -fuzztime takes for each.
set -euo pipefail
fuzztime=$1

# Prints "package target" for every fuzz target of the module. The sources are read, and not asked
# by go test -list, which compiles and links the tests of all packages.
targets() {
	local package file
	go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}' ./... | while read -r package file; do
		[ -n "$file" ] || continue
		sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$package \1|p" "$file"
	done
}

# Before Go 1.27, go test -fuzz may report its own end of time as a failure
# (go.dev/issue/75804). The report is one line, and the only one: a failing
# input is written down, a panic or a crashed worker is described.
only_out_of_time() {
	awk '
		/^ *--- FAIL: / { fails++; getline; if ($0 !~ /^ *context deadline exceeded$/) other = 1 }
		/Failing input|panic:|hung or terminated|DATA RACE/ { other = 1 }
		END { exit !(fails == 1 && !other) }' "$1"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
found=$(targets)
while read -r package target; do
	[ -n "$target" ] || continue
	echo "--> $package $target"
	if ! go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 20x "$package" </dev/null 2>&1 | tee "$log"; then
		only_out_of_time "$log" || exit 1
		echo "$target: not a failure, only the end of -fuzztime (go.dev/issue/75804)"
	fi
done <<<"$found"
