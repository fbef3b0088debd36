# Whole cents: see docs/money.md.

# A part of an amount in percent, rounded half up to a whole cent.
function percent_of(amount, percent) {
    return int((amount * percent + 50) / 100)
}

# The same, rounded down: what is given away is never more than was promised.
function percent_below(amount, percent) {
    return int(amount * percent / 100)
}

# The smaller of two numbers.
function smaller(one, other) {
    return one < other ? one : other
}

# How many packs of a size hold so many pieces: the last one may be half empty.
function packs_for(pieces, size) {
    return int((pieces + size - 1) / size)
}

# An amount for people: 1234 cents are 12.34.
function euros(cents,    sign) {
    if (cents < 0) {
        sign = "-"
        cents = 0 - cents
    }
    return sign sprintf("%d.%02d", int(cents / 100), cents % 100)
}
