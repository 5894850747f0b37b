#!/usr/bin/env bash
# Runs every fuzz target of the module in the current directory.
# Usage: fuzz.sh TIME, where TIME is what go test -fuzztime takes for each.
set -euo pipefail
fuzztime=$1

# Prints "package target" for every fuzz target of the module.
targets() {
	go test -list '^Fuzz' ./... | awk '
		/^Fuzz/ { names[n++] = $1 }
		/^ok/   { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }'
}

# Before Go 1.27, go test -fuzz may report its own end of time as a failure
# (go.dev/issue/75804). That report is one line, and the only one: a failing
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
	if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 20x "$package" </dev/null 2>&1 | tee "$log"; then
		only_out_of_time "$log" || exit 1
		echo "$target: not a failure, only the end of -fuzztime (go.dev/issue/75804)"
	fi
done <<<"$found"
