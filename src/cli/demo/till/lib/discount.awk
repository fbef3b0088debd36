# How much cheaper many pieces are: see docs/discounts.md.

# The discount on a line of so many pieces, in percent.
function discount_percent(quantity) {
    if (quantity >= 100) {
        return 12
    }
    if (quantity >= 50) {
        return 8
    }
    if (quantity >= 10) {
        return 5
    }
    return 0
}

# The net amount of a line, in cents.
function net_of(price, quantity,    full) {
    full = price * quantity
    return full - percent_below(full, discount_percent(quantity))
}
