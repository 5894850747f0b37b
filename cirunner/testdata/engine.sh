#!/usr/bin/env bash
# An engine that has no containers: what is run in one is run here, in a session of its own.
# It writes its arguments to $FAKE_ENGINE/calls, and keeps a folder for each container.
set -u
home=$FAKE_ENGINE
printf -v call '%q ' "$@"
cat <<< "$call" >> "$home/calls" # in one write: calls may come at once
mkdir -p "$home"/{containers,networks,images}

image() { echo "$home/images/${1//\//%}"; }
end() { # SIGNAL CONTAINER FILE...: of processes
	local signal=$1 name=$2 file pid
	shift 2
	for file in "$@"; do
		while read -r pid; do kill "-$signal" -- "-$pid" 2> /dev/null; done < "$home/containers/$name/$file"
	done
	return 0 # also if none is left
}

# The filter of a list, a label.
label=
[[ $* =~ --filter\ label=(.*) ]] && label=${BASH_REMATCH[1]}
found() { # FOLDER
	local each
	for each in "$home/$1"/*; do
		[ -e "$each" ] && { [ -z "$label" ] || grep -qxF -- "$label" "$each/labels"; } && basename "$each"
	done
	return 0
}

case "$1 ${2:-}" in
"ps "*) found containers ;;
"network ls") found networks ;;
"network create")
	name=${!#}
	mkdir "$home/networks/$name" || exit 1
	while [ $# -gt 0 ]; do [ "$1" = --label ] && echo "$2" >> "$home/networks/$name/labels"; shift; done
	;;
"network rm") shift 2; for each in "$@"; do rm -r "$home/networks/$each"; done ;;
"image inspect")
	[ -e "$(image "${!#}")" ] || { echo "no such image: ${!#}" >&2; exit 1; }
	echo "{\"User\":\"\",\"ExposedPorts\":{\"5432/udp\":{}$(cat "$(image "${!#}")")}}" # an image is a file with more ports
	;;
"pull "*)
	[ "${!#}" != nowhere ] || { echo 'no such registry' >&2; exit 1; }
	[ "${!#}" != slow ] || exec sleep 1000
	echo "pulled ${!#}"
	touch "$(image "${!#}")"
	;;
"run "*)
	shift
	new=$(mktemp -d "$home/new.XXXXXX")
	touch "$new"/{labels,execs,main,log}
	while [ $# -gt 0 ]; do
		case $1 in
		--detach) shift ;;
		--label) echo "$2" >> "$new/labels"; shift 2 ;;
		--name) name=$2; shift 2 ;;
		--*=*) shift ;;
		--*) shift 2 ;;
		*) break ;;
		esac
	done
	shift # the image
	touch "$new/running"
	mv "$new" "$home/containers/$name"
	new=$home/containers/$name
	setsid bash -c 'new=$1; shift; touch "$new/up"; "$@" > "$new/log" 2>&1; code=$?; [ ! -d "$new" ] || { echo $code > "$new/code"; rm -f "$new/running"; }' - "$new" "$@" > /dev/null 2>&1 < /dev/null &
	echo $! > "$new/main"
	until [ -e "$new/up" ]; do sleep 0.01; done # it has left the group of the client
	echo "$name"
	;;
"exec "*)
	shift
	dir=.
	while [[ $1 == --* ]]; do
		[ "$1" = --workdir ] && dir=$2
		shift 2
	done
	name=$1
	[ -e "$home/containers/$name/running" ] || { echo "$name does not run" >&2; exit 125; }
	case ${5:-} in
	kill) end "${6#-}" "$name" execs ;;
	*)
		cd "$dir" || exit 125
		setsid bash -c 'echo $$ >> "$1"; shift; exec "$@"' - "$home/containers/$name/execs" "${@:2}" & # on record before it says anything
		wait $!
		;;
	esac
	;;
"inspect "*)
	name=${!#}
	[ -d "$home/containers/$name" ] || { echo "no such container: $name" >&2; exit 1; }
	case $3 in
	*Networks*) echo 127.0.0.1 ;;
	*) if [ -e "$home/containers/$name/running" ]; then echo true 0; else echo "false $(cat "$home/containers/$name/code")"; fi ;;
	esac
	;;
"logs "*)
	name=${!#}
	exec 3< "$home/containers/$name/log" || exit 1
	while [ -e "$home/containers/$name/running" ]; do sleep 0.05; cat <&3; done
	cat <&3 # all is there when it does not run any more
	;;
"kill "*)
	shift 3
	for name in "$@"; do echo 137 > "$home/containers/$name/code"; rm -f "$home/containers/$name/running"; end KILL "$name" execs main; done
	;;
"rm "*) shift 3; for name in "$@"; do end KILL "$name" execs main; rm -r "$home/containers/$name"; done ;;
*) echo "unknown: $*" >&2; exit 125 ;;
esac
