#!/usr/bin/env bash
# Installs what the tests need beside Go, if it is not there: a C compiler for the
# race detector, the servers that the tests of taskqueue, locks and kvqueue start and stop
# themselves, a browser for the pages of taskqueue and cirunner, and podman for the containers of cirunner. Where there is no apt-get it says what to install.
set -euo pipefail

missing=()
cc=$(go env CC)
command -v "${cc%% *}" >/dev/null || missing+=(gcc libc6-dev)
command -v redis-server >/dev/null || missing+=(redis-server)
command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
command -v mariadbd >/dev/null || missing+=(mariadb-server)
browser=''
for name in chromium chromium-browser google-chrome chrome; do
	browser=${browser:-$(command -v "$name" || true)}
done
[ -n "$browser" ] || missing+=(chromium)
command -v podman >/dev/null && command -v runc >/dev/null && command -v busybox >/dev/null || missing+=(podman runc busybox-static)
command -v dynalite >/dev/null || command -v npm >/dev/null || missing+=(npm)

if [ ${#missing[@]} -gt 0 ]; then
	if ! command -v apt-get >/dev/null; then
		echo "make: the tests need ${missing[*]}: install what your system calls so" >&2
		exit 1
	fi
	echo "==> installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	sudo=$([ "$(id -u)" = 0 ] || echo sudo)
	$sudo apt-get update -qq
	$sudo apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

# A server with the protocol of DynamoDB.
if ! command -v dynalite >/dev/null; then
	echo '==> installing dynalite'
	$([ "$(id -u)" = 0 ] || echo sudo) npm install --global --silent --no-audit --no-fund dynalite@4.0.0
fi

# etcd 3.6, which no distribution has, is built where go install puts programs. Its module has
# replacements, so it is a requirement of a module that is made for it.
etcd="$(go env GOPATH | cut -d: -f1)/bin/etcd"
if ! "$etcd" --version 2>/dev/null | grep -q '^etcd Version: 3\.[6-9]'; then
	echo '==> building etcd'
	build=$(mktemp -d)
	trap 'rm -rf "$build"' EXIT
	(
		cd "$build"
		export GOWORK=off GOFLAGS=-mod=mod
		go mod init etcd.local/build && go get go.etcd.io/etcd/server/v3@v3.6.16 && go build -o "$etcd" go.etcd.io/etcd/server/v3
	) 2>"$build/log" || { cat "$build/log" >&2; exit 1; }
fi
