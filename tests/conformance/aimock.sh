#!/usr/bin/env bash
# Runs the real program against aimock, a server of models that nobody here wrote, and holds what
# both of them recorded against each other. README.md beside this file says more.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/serve.sh"
serve_aimock "$here/aimock.json"
url="$aimock"

# A task that is small, with results that are long.
workspace="$scratch/workspace"
mkdir -p "$workspace/logs" "$workspace/notes"
printf 'item,pieces,price\nbolt,30,5\nnut,12,3\n' >"$workspace/stock.csv"
cat >"$workspace/total.sh" <<'SH'
# Says how many pieces are in stock.
awk -F, 'NR > 1 { sum += $3 } END { print "total " sum }' stock.csv
SH
cat >"$workspace/check.sh" <<'SH'
total="$(sh total.sh)"
if [ "$total" = "total 42" ]; then echo "check: passed"; else echo "check: failed"; exit 1; fi
SH
for day in 1 2 3; do
    {
        printf 'This is the log of day %d.\n' "$day"
        seq -f "d$day-%03g: the shelf was counted, and nothing was missing" 1 100
    } >"$workspace/logs/day-$day.log"
done
for part in 1 2 3 4 5 6 7; do
    {
        printf 'This is part %d of the notes.\n' "$part"
        seq -f "n$part-%03g: a line that says little and is long enough to be put away" 1 80
    } >"$workspace/notes/part-$part.txt"
done

transcripts="$scratch/transcripts"
code=0
program run "The check of this workspace fails. Find out why, mend it, and read the notes then." \
    -m conformance --base-url "$url/v1" -C "$workspace" --transcripts "$transcripts" --sandbox off \
    --set model.context_window=12000 \
    --set compaction.estimate=chars \
    --set compaction.micro.keep_recent=2 \
    --set compaction.micro.min_gain_tokens=1000 \
    --set 'compaction.micro.exempt=[Read]' \
    --set compaction.auto.target_ratio=0.1 \
    --set compaction.summary.max_tokens=400 \
    --set compaction.tool.min_ratio=0 \
    --set compaction.tool.cooldown_rounds=0 \
    >"$scratch/answer" 2>"$scratch/run.log" || code=$?

run="$(find "$transcripts" -name '*.jsonl' 2>/dev/null | head -n 1 || true)"
verified=0
program replay "${run:-none}" --verify >"$scratch/replay.log" 2>&1 || verified=$?

node "$here/check.mjs" "$url" "$scratch" "${run:-none}" "$code" "$verified"
if [ -n "${OPENAI_PYTHON:-}" ]; then
    "$OPENAI_PYTHON" "$here/bodies.py" <"$scratch/bodies.jsonl"
fi
