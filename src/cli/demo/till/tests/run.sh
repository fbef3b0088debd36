#!/bin/sh
# Runs every case and says what became of it. Exit 0 only if all are as expected.
cd "$(dirname "$0")/.." || exit 2
good=0
bad=0
found=$(mktemp) || exit 2
trap 'rm -f "$found"' EXIT
for orders in tests/cases/*.tsv; do
    name=$(basename "$orders" .tsv)
    sh bin/till "$orders" >"$found" 2>&1
    if cmp -s "tests/cases/$name.expected" "$found"; then
        good=$((good + 1))
        echo "ok    $name"
        continue
    fi
    bad=$((bad + 1))
    echo "FAIL  $name"
    echo "  expected:"
    sed 's/^/    /' "tests/cases/$name.expected"
    echo "  found:"
    sed 's/^/    /' "$found"
done
echo "$good ok, $bad failed"
[ "$bad" -eq 0 ]
