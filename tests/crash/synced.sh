#!/usr/bin/env bash
# Whether the program syncs what it says to be durable, in the right order, as strace sees it.
# Exit code 3: there is no strace here, or it may not trace.
set -eu
cd "$(dirname "$0")/../.."
if ! strace -o /dev/null true 2>/dev/null; then
    echo 'synced.sh: strace is not here or may not trace' >&2
    exit 3
fi
exec cargo test --test it -- crash::synced --ignored
