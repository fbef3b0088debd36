# What the state gets: see docs/tax.md.

# The tax on articles of a group, in percent.
function tax_percent(group) {
    if (group == "food" || group == "book") {
        return 7
    }
    if (group == "stamp") {
        return 0
    }
    return 19
}

# The tax on a net amount, in whole cents.
function tax_of(net, group) {
    return percent_of(net, tax_percent(group))
}

# The net amount in a price for people, tax included.
function net_within(gross, group,    percent) {
    percent = tax_percent(group)
    return int((gross * 100 + (100 + percent) / 2) / (100 + percent))
}
