# How amounts are printed: see docs/format.md.

# Prints an order, or the sum of all.
function print_total(order, customer, net, tax) {
    printf "%s\t%s\t%d\t%d\t%d\n", order, customer, net, tax, net + tax
}

# Shows a line of an order, if somebody asked for it.
function trace(order, article, quantity, net, tax) {
    if (ENVIRON["TILL_TRACE"] != "") {
        printf "  # %s: %d x %s at %d, %d%% off: net %d, tax %d\n", order, quantity, article,
            cents_of[article], discount_percent(quantity), net, tax
    }
}
