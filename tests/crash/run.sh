#!/usr/bin/env bash
# The campaigns of `tests/it/crash`: what `cargo test` tries a little of, many times over.
#   tests/crash/run.sh                    all of them
#   tests/crash/run.sh killed lost        some of them
# How much is tried can be said by the variables below. Exit code 0: nothing was lost.
set -eu
cd "$(dirname "$0")/../.."

# Real kills of runs that are taken up to their end; programs that take one run up at once, and rounds.
export UNDERTEXT_KILLS="${UNDERTEXT_KILLS:-1000}"
export UNDERTEXT_PROGRAMS="${UNDERTEXT_PROGRAMS:-64}"
export UNDERTEXT_PROGRAM_ROUNDS="${UNDERTEXT_PROGRAM_ROUNDS:-10}"
# Draws of what a loss of power leaves, at each failing operation; runs that fail again and again.
export UNDERTEXT_LOSSES="${UNDERTEXT_LOSSES:-40}"
export UNDERTEXT_WALKS="${UNDERTEXT_WALKS:-1000}"
# Every so many bytes of the last 64 KiB the file is cut; how often bits are flipped.
export UNDERTEXT_CUTS="${UNDERTEXT_CUTS:-1}"
export UNDERTEXT_FLIPS="${UNDERTEXT_FLIPS:-1000000}"
# How often one run is taken up again.
export UNDERTEXT_RESUMES="${UNDERTEXT_RESUMES:-100}"
# Rounds in which 64 open one transcript.
export UNDERTEXT_ROUNDS="${UNDERTEXT_ROUNDS:-1000}"

[ "$#" -gt 0 ] || set -- again cut killed lost opened
filters=()
for name in "$@"; do
    filters+=("crash::$name")
done
exec cargo test --test it -- --nocapture --test-threads 1 "${filters[@]}"
