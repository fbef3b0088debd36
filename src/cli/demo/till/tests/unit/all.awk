# Runs the cases of single functions: a call, what it gives, and what it must give.

function is(what, found, expected) {
    if ("" found == "" expected) {
        good++
        return
    }
    bad++
    print "FAIL " what
    print "  expected: " expected
    print "  found:    " found
}

BEGIN {
    test_money()
    test_barcode()
    test_dates()
    test_parse()
    test_discount()
    test_tax()
    test_voucher()
    test_parcel()
    test_points()
    test_stock()
    test_format()
    printf "\n%d of %d cases of functions are right\n", good, good + bad
    exit bad > 0
}
