#!/usr/bin/env bash
# Runs one check of make test, beside others.
# Usage: step.sh FOLDER NAME ARGUMENT..., with the arguments of make that do the check.
# The output goes to FOLDER/NAME.log, so that it does not mix with the output of the checks beside
# it, and is shown if the check fails. Then the checks beside it are stopped, too. FOLDER/failed gets
# the names of the checks that failed, and FOLDER/times a line for each check that has ended by itself:
# its name, then seconds of wall, user and system time.
set -uo pipefail
folder=$1 name=$2
shift 2
log=$folder/$name.log running=$folder/$name.running

stop() {
	trap '' INT TERM
	kill -TERM -- "-$check" 2>/dev/null
	wait "$check" 2>/dev/null
	rm -f "$running" "$log.time"
	echo "    $name: stopped" >&2
	exit 1
}

echo "==> $name"
TIMEFORMAT='%0R %0U %0S'
set -m # the check is a process group, which can be stopped as one
{ time "${MAKE:-make}" --no-print-directory "$@" >"$log" 2>&1 </dev/null; } 2>"$log.time" &
check=$!
trap stop INT TERM
echo $$ >"$running"
# A check that fails writes its name, and then looks who is running: one of the two sees the other.
[ ! -e "$folder/failed" ] || stop
wait "$check"
status=$?
trap '' INT TERM
rm -f "$running"
times=$(tail -n 1 "$log.time")
rm -f "$log.time"
echo "$name $times" >>"$folder/times"
read -r wall user system <<<"$times"
if [ $status -ne 0 ]; then
	echo "$name" >>"$folder/failed"
	for other in "$folder"/*.running; do
		[ ! -e "$other" ] || kill -TERM "$(<"$other")" 2>/dev/null
	done
	{
		echo "==> $name failed, and this is what it says:"
		cat "$log"
		echo "make: $name failed after ${wall}s; by itself: make $*"
	} >&2
	exit $status
fi
echo "    $name: passed in ${wall}s ($((user + system))s of CPU)"
