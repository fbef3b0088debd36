# Checks what stands in a column: see docs/format.md.

# Ends the program with a message that names the line.
function refuse(why) {
    print FILENAME ":" FNR ": " why > "/dev/stderr"
    refused = 1
    exit 2
}

# Whether a column holds a whole number from 1 on.
function is_quantity(text) {
    return text ~ /^[1-9][0-9]*$/
}

# The quantity in a column, if it is one.
function quantity_in(text) {
    if (!is_quantity(text)) {
        refuse("`" text "` is no quantity")
    }
    return text + 0
}

# The article in a column, if it has a price.
function article_in(text) {
    if (!(text in cents_of)) {
        refuse("no price for `" text "`")
    }
    return text
}

# Whether a column holds a date such as 2024-02-29.
function is_date(text,    part) {
    if (split(text, part, "-") != 3) {
        return 0
    }
    if (part[2] < 1 || part[2] > 12) {
        return 0
    }
    return part[3] >= 1 && part[3] <= days_in(part[1], part[2])
}
