#!/bin/sh
# Unpacks the programs beside this file and runs stages on the machine's GPU:
#
#	sh run.sh [-small] [-out FOLDER] [-limit 480s] [-keep FOLDER] [-data FOLDER] [STAGE...]
#
# tools/gpu/main.go has the stages.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
for name in gpu gnnstore-cuda cuda.test step; do
	gzip -dc "$here/$name.gz" >"$programs/$name"
	chmod +x "$programs/$name"
done
cp "$here"/*.py "$programs"
"$programs/gpu" -folder "$programs" "$@"
