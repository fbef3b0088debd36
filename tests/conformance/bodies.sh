#!/usr/bin/env bash
# Holds every shape of request that our own tests send against the types of OpenAI's Python package.
# README.md beside this file says more.
set -euo pipefail

UNDERTEXT="${UNDERTEXT:-none}"
source "$(dirname "${BASH_SOURCE[0]}")/serve.sh"

place="$store/openai"
if [ ! -x "$place/bin/python" ]; then
    need python3
    python3 -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check openai==3.54.0 pydantic==2.14.3 ||
        absent "the openai package"
fi

# The tests of the library, of the whole and of the program write one body of each shape there.
mkdir "$scratch/bodies"
UNDERTEXT_BODIES="$scratch/bodies" cargo test --quiet --lib --test it
"$place/bin/python" "$here/bodies.py" "$scratch/bodies"
