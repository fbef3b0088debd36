# What the state gets: see docs/tax.md.

# The tax on articles of a group, in percent.
function tax_percent(group) {
    if (group == "food" || group == "book") {
        return 7
    }
    return 19
}

# The tax on a net amount, in whole cents.
function tax_of(net, group) {
    return int(net * tax_percent(group) / 100)
}
