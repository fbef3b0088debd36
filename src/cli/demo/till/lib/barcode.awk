# The check digit of a barcode: see docs/barcodes.md.

# The weight of a place, counted from the left.
function barcode_weight(place) {
    return place % 2 == 1 ? 1 : 3
}

# The sum of all digits, each times the weight of its place.
function barcode_sum(digits,    place, sum) {
    for (place = 1; place <= length(digits); place++) {
        sum += substr(digits, place, 1) * barcode_weight(place)
    }
    return sum + 0
}

# The digit that makes the sum a multiple of ten.
function barcode_check(digits) {
    return (10 - barcode_sum(digits) % 10) % 10
}

# Whether a barcode of 13 digits ends with the right one.
function is_barcode(code) {
    if (length(code) != 13) {
        return 0
    }
    return barcode_check(substr(code, 1, 12)) == substr(code, 13, 1)
}
