#!/bin/sh
# Writes the completions of shells into a folder, under the names that the shells look for.
set -eu
mkdir -p "$1"
go run ./cmd/gnnstore completion bash >"$1/gnnstore.bash"
go run ./cmd/gnnstore completion zsh >"$1/_gnnstore"
go run ./cmd/gnnstore completion fish >"$1/gnnstore.fish"
