#!/usr/bin/env bash
# Runs, without the race detector, the tests of some packages that count less under it: those
# in files that name raceFactor (or RaceFactor) or call fewer. The others have run in full by make unit.
# Usage: counted.sh PACKAGE-FOLDER...
set -euo pipefail

for folder in "$@"; do
	files=$(grep -liE 'racefactor|\bfewer\(' "$folder"/*_test.go | grep -v '/race_[a-z_]*test\.go$') ||
		{ echo "counted.sh: no test of $folder names raceFactor or calls fewer" >&2; exit 1; }
	# shellcheck disable=SC2086 # names of files, one a line
	names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $files | paste -sd'|' -)
	go test -vet=off -run "^($names)\$" "$folder"
done
