#!/usr/bin/env bash
# Opens pages in a real browser and tries them; with `screenshots`, takes the pictures of docs/ instead.
# README.md beside this file says more.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
cd "$root"
version=1.65.1
store="${CARGO_TARGET_DIR:-$root/target}/page/playwright-core-$version"

# What cannot be had here is no fault of ours: the exit code is one of its own.
absent() {
    printf 'run.sh: %s\n' "$1" >&2
    exit 3
}

for program in node npm; do
    command -v "$program" >/dev/null || absent "$program is not here"
done
if [ -z "${CHROMIUM:-}" ]; then
    CHROMIUM="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"
fi
if [ ! -x "${CHROMIUM:-}" ]; then
    absent "there is no Chromium: name one by CHROMIUM, or install it (Debian: apt-get install chromium)"
fi
if [ ! -f "$store/node_modules/playwright-core/index.mjs" ]; then
    mkdir -p "$store"
    npm install --prefix "$store" --ignore-scripts --no-audit --no-fund --loglevel=error \
        --fetch-retries=1 "playwright-core@$version" ||
        absent "playwright-core $version is not here and cannot be fetched"
fi
if [ -z "${UNDERTEXT:-}" ]; then
    cargo build --quiet
    UNDERTEXT="${CARGO_TARGET_DIR:-$root/target}/debug/undertext"
fi

scratch="$(mktemp -d)"
mkdir "$scratch/home"
finish() {
    if [ -n "${KEEP:-}" ]; then
        printf 'kept: %s\n' "$scratch"
    else
        rm -rf "$scratch"
    fi
}
trap finish EXIT

case "${1:-check}" in
    check | screenshots) script="$here/${1:-check}.mjs" ;;
    *) printf 'run.sh: check or screenshots, not %s\n' "$1" >&2 && exit 2 ;;
esac
[ "$#" -eq 0 ] || shift
# With nothing of the person's own settings, and no proxy.
env -i PATH="$PATH" HOME="$scratch/home" UNDERTEXT="$UNDERTEXT" CHROMIUM="$CHROMIUM" SCRATCH="$scratch" \
    PLAYWRIGHT="$store/node_modules/playwright-core/index.mjs" \
    timeout 900 node "$script" "$@"
