# What the scripts beside this file share; they source it. Everything that it starts ends with them.

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
script="$(basename "$0")"
cd "$root"

# What is fetched and built once for all runs.
store="${CARGO_TARGET_DIR:-$root/target}/conformance"
scratch="$(mktemp -d)"
mkdir -p "$scratch/home" "$store"
servers=()

fail() {
    printf '%s: %s\n' "$script" "$1" >&2
    exit 2
}

# What cannot be had here is no fault of ours: the exit code is one of its own.
absent() {
    printf '%s: %s is not here and cannot be fetched\n' "$script" "$1" >&2
    exit 3
}

need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || absent "$program"
    done
}

finish() {
    local pid
    for pid in "${servers[@]}"; do
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    if [ -n "${KEEP:-}" ]; then
        printf 'kept: %s\n' "$scratch"
    else
        rm -rf "$scratch"
    fi
}
trap finish EXIT

# serve NAME SECONDS PATTERN COMMAND...: starts a server and waits until its log has a line of this
# pattern; `found` is what its first group holds.
serve() {
    local name="$1" seconds="$2" pattern="$3" log="$scratch/$1.log"
    shift 3
    : >"$log"
    "$@" >"$log" 2>&1 &
    servers+=($!)
    for _ in $(seq $((seconds * 10))); do
        found="$(sed -nE "s#.*$pattern.*#\\1#p" "$log" | head -n 1)"
        if [ -n "$found" ]; then
            return
        fi
        kill -0 "${servers[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$log" >&2
    fail "$name did not start"
}

# serve_aimock FIXTURES: starts aimock on a port of the system's choice; `aimock` is its address.
serve_aimock() {
    local version=1.43.0
    local place="$store/aimock-$version"
    local program="$place/node_modules/@copilotkit/aimock/dist/cli.js"
    need node npm
    if [ ! -f "$program" ]; then
        mkdir -p "$place"
        npm install --prefix "$place" --ignore-scripts --no-audit --no-fund --loglevel=error \
            --fetch-retries=1 "@copilotkit/aimock@$version" || absent "aimock $version"
    fi
    serve aimock 10 'listening on (http://127\.0\.0\.1:[0-9]+)' \
        node "$program" --port 0 --host 127.0.0.1 --fixtures "$1" --validate-on-load --strict
    aimock="$found"
}

# The program, with nothing of the person's own settings and no proxy between it and the server.
program() {
    env -i PATH="$PATH" HOME="$scratch/home" \
        timeout 120 "$UNDERTEXT" "$@"
}

if [ -z "${UNDERTEXT:-}" ]; then
    cargo build --quiet
    UNDERTEXT="${CARGO_TARGET_DIR:-$root/target}/debug/undertext"
fi

# run NAME SOUGHT ARGUMENT...: runs the program once and notes what is to be found; see ran.mjs.
run() {
    local name="$1" sought="$2" code=0 verified=0 transcript
    shift 2
    program run "$@" --transcripts "$scratch/$name" --sandbox off \
        >"$scratch/$name.answer" 2>"$scratch/$name.log" || code=$?
    transcript="$(find "$scratch/$name" -name '*.jsonl' 2>/dev/null | head -n 1)"
    if [ -z "$transcript" ]; then
        cat "$scratch/$name.log" >&2
        fail "$name left no transcript"
    fi
    program replay "$transcript" --verify >"$scratch/$name.replay" 2>&1 || verified=$?
    printf '{"name":"%s","transcript":"%s","code":%d,"verified":%d,"sought":%s}\n' \
        "$name" "$transcript" "$code" "$verified" "$sought" >>"$scratch/runs.jsonl"
}

# Says whether every run became what it was to become.
judge() {
    node "$here/ran.mjs" <"$scratch/runs.jsonl"
}
