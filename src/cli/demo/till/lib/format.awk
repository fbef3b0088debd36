# How things are printed: see docs/format.md.

# A text with blanks before it, so wide; a longer one stays as it is.
function to_right(text, wide) {
    return sprintf("%" wide "s", text)
}

# A text cut to a width, with a point where something is missing.
function cut_to(text, wide) {
    if (length(text) <= wide) {
        return text
    }
    return substr(text, 1, wide - 1) "."
}

# Prints an number, or the sum of all.
function print_total(number, customer, net, tax, charge, points) {
    printf "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", number, cut_to(customer, 8), euros(net), euros(tax),
        euros(charge), euros(net + tax + charge), points
}

# Shows a line of an number, if somebody asked for it.
function trace(number, article, quantity, net, tax, grams) {
    if (ENVIRON["TILL_TRACE"] != "") {
        print "  #" to_right(number, 5) ": " to_right(quantity, 3) " x " article \
            " at " to_right(euros(cents_of[article]), 6) ", " discount_percent(quantity) "% off: net " \
            to_right(euros(net), 8) ", tax " to_right(euros(tax), 7) ", " to_right(grams, 6) " g"
    }
}
