#!/usr/bin/env bash
# Runs the real program against LiteLLM, which speaks to aimock in OpenAI's and in Anthropic's
# protocol and translates. README.md beside this file says more.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/serve.sh"
need python3 node

# Pinned: other versions of this package were taken over by strangers.
version=1.100.0
place="$store/litellm-$version"
if [ ! -x "$place/bin/litellm" ]; then
    python3 -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check "litellm[proxy]==$version" ||
        absent "litellm $version"
fi

serve_aimock "$here/lines.json"
cat >"$scratch/litellm.yaml" <<YAML
model_list:
  - model_name: openai
    litellm_params: { model: openai/gpt-4o, api_base: "$aimock/v1", api_key: none }
  - model_name: anthropic
    litellm_params: { model: anthropic/claude-3-5-sonnet-20241022, api_base: "$aimock", api_key: none }
  - model_name: rate
    litellm_params: { model: openai/gpt-4o, api_key: none, mock_response: "litellm.RateLimitError" }
  - model_name: overflow
    litellm_params: { model: openai/gpt-4o, api_key: none, mock_response: "litellm.ContextWindowExceededError" }
litellm_settings: { telemetry: false, num_retries: 0 }
router_settings: { num_retries: 0, disable_cooldowns: true }
YAML
# It takes no port of the system's choice.
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
serve litellm 180 'Uvicorn running on (http://127\.0\.0\.1:[0-9]+)' \
    env LITELLM_LOCAL_MODEL_COST_MAP=True "$place/bin/litellm" \
    --config "$scratch/litellm.yaml" --host 127.0.0.1 --port "$port"
url="$found/v1"

mkdir -p "$scratch/workspace"
printf 'item,pieces,price\nbolt,30,5\nnut,12,3\n' >"$scratch/workspace/stock.csv"
ask() {
    local model="$1" sought="$2"
    shift 2
    run "$model" "$sought" "How many lines has stock.csv?" -m "$model" --base-url "$url" \
        -C "$scratch/workspace" --set model.retries.attempts=2 "$@"
}

finished='"code":0,"end":"finished","text":"3 lines","results":["ok","ok"]'
ask openai "{$finished,\"faults\":[],\"counted\":true}"
ask anthropic "{$finished,\"faults\":[],\"counted\":true}"
ask rate '{"code":4,"faults":["rate","rate"]}'
ask overflow '{"code":1,"end":"oversize","faults":["overflow"]}'
judge
