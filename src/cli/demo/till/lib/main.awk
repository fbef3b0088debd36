# Reads the prices and the customers, then the orders, and adds up.

BEGIN { FS = "\t" }

FNR == 1 { file++ }

/^#/ || NF == 0 { next }

file == 1 {
    cents_of[$1] = $3
    group_of[$1] = $4
    grams_of[$1] = $5
    next
}

file == 2 {
    zone_of[$1] = $2
    next
}

{
    if ($1 != order) {
        finish()
        order = $1
        customer = $2
        split($3, date, "-")
    }
    if (is_voucher($4)) {
        voucher = $4
        next
    }
    article = article_in($4)
    quantity = quantity_in($5)
    line_net = net_of(cents_of[article], quantity)
    line_tax = tax_of(line_net, group_of[article])
    line_grams = grams_of[article] * quantity
    trace(order, article, quantity, line_net, line_tax, line_grams)
    net += line_net
    tax += line_tax
    grams += line_grams
}

END {
    if (refused) {
        exit 2
    }
    finish()
    print_total("sum", "", all_net, all_tax, all_charge, all_points)
}

# Prints the order that is complete and begins another one.
function finish(    gross, charge, points) {
    if (order != "") {
        gross = net + tax
        charge = parcel_charge(grams, zone_of[customer], gross)
        points = points_for(gross, weekday(date[1], date[2], date[3]))
        if (voucher != "") {
            charge -= voucher_value(voucher, gross)
        }
        print_total(order, customer, net, tax, charge, points)
        all_net += net
        all_tax += tax
        all_charge += charge
        all_points += points
    }
    net = tax = grams = 0
    voucher = ""
}
