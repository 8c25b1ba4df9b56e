#!/bin/sh
# extras.sh FOLDER [VERSION] writes manual pages and the completions of shells into a folder, under
# the names that man and the shells look for. Pages have the date of the commit, and the version.
set -eu
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$1/completions"
go run -tags man -ldflags "-X main.release=${2-}" ./cmd/gnnstore man "$1/man"
go run ./cmd/gnnstore completion bash >"$1/completions/gnnstore.bash"
go run ./cmd/gnnstore completion zsh >"$1/completions/_gnnstore"
go run ./cmd/gnnstore completion fish >"$1/completions/gnnstore.fish"
