#!/usr/bin/env bash
# Holds trajectories that `undertext export --format atif` writes against the types of the atif package.
# README.md beside this file says more.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/serve.sh"

place="$store/atif"
if [ ! -x "$place/bin/python" ]; then
    need python3
    python3 -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check atif==1.8.0 pydantic==2.14.3 ||
        absent "the atif package"
fi

# The golden run, and whatever else is named.
number=0
for run in "$root/transcripts/demo.jsonl" "$@"; do
    for view in raw compacted; do
        number=$((number + 1))
        "$UNDERTEXT" export "$run" --format atif --view "$view" --out "$scratch/$number.json" 2>"$scratch/said" ||
            fail "$(cat "$scratch/said")"
    done
done
"$place/bin/python" "$here/trajectories.py" "$scratch"/*.json
