# Checks a line of an order file: see docs/format.md.

# Ends the program with a message that names the line.
function refuse(why) {
    print FILENAME ":" FNR ": " why > "/dev/stderr"
    failed = 1
    exit 2
}

# The quantity in a column, if it is one.
function quantity_in(text) {
    if (text !~ /^[1-9][0-9]*$/) {
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
