# What is on the shelf, and what is to be ordered: see docs/stock.md.

# The pieces that must be there when an order is placed: what sells meanwhile, and a tenth more.
function stock_floor(sold_a_week, weeks) {
    return sold_a_week * weeks + packs_for(sold_a_week * weeks, 10)
}

# The pieces to order, in full packs; none as long as there are enough.
function stock_order(shelf, floor, pack) {
    if (shelf > floor) {
        return 0
    }
    return pack * packs_for(floor - shelf + 1, pack)
}

# How many weeks the shelf lasts, rounded down; 99 if nothing sells.
function stock_weeks(shelf, sold_a_week) {
    if (sold_a_week == 0) {
        return 99
    }
    return smaller(99, int(shelf / sold_a_week))
}
