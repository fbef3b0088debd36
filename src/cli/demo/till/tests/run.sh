#!/bin/sh
# Runs every case and says what became of it. Exit 0 only if all are as expected.
case $0 in */*) cd "${0%/*}/.." || exit 2 ;; *) cd .. || exit 2 ;; esac

# The cases of single functions, lowest first: what builds on something wrong is wrong as well.
set --
for part in money barcode dates parse discount tax voucher parcel points stock format; do
    set -- "$@" -f "lib/$part.awk" -f "tests/unit/$part.awk"
done
failed=0
functions=right
awk "$@" -f tests/unit/all.awk 2>&1 </dev/null || failed=1 functions=wrong

# Whole files of orders: NAME.tsv must come to NAME.expected, line by line.
for orders in tests/cases/*.tsv; do
    expected=$(cat "${orders%.tsv}.expected")
    found=$(TILL_TRACE=1 sh bin/till "$orders" 2>&1; echo "exit $?")
    [ "$found" = "$expected" ] && continue
    failed=1
    echo "FAIL $orders"
    printf '%s\n\f\n%s\n' "$expected" "$found" | awk -f tests/differ.awk
done
if [ "$failed$functions" = 1right ]; then
    echo "  the single functions are right: see lib/main.awk, which puts them together"
fi
if [ "$failed" -eq 0 ]; then
    echo "all cases pass"
    exit 0
fi
echo
echo "January (data/orders-01.tsv) as it is computed now, line by line, for the bookkeeper:"
TILL_TRACE=1 sh bin/till data/orders-01.tsv 2>&1
echo
echo "the tests failed"
exit 1
