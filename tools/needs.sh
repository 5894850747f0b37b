#!/usr/bin/env bash
# Installs what the tests need beside Go, if it is not there: a C compiler for the
# race detector, and a Redis server, which the tests of taskqueue start and stop
# themselves. Where there is no apt-get it says what to install.
set -euo pipefail

missing=()
cc=$(go env CC)
command -v "${cc%% *}" >/dev/null || missing+=(gcc libc6-dev)
command -v redis-server >/dev/null || missing+=(redis-server)
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "make: the tests need ${missing[*]}: install what your system calls so" >&2
	exit 1
fi
echo "==> installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
$sudo apt-get update -qq
$sudo apt-get install -qq -y --no-install-recommends "${missing[@]}"
