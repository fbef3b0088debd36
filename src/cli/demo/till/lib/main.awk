# Reads the prices, then the orders, and adds up.

BEGIN { FS = "\t" }

FNR == 1 { file++ }

/^#/ || NF == 0 { next }

file == 1 {
    cents_of[$1] = $3
    group_of[$1] = $4
    next
}

{
    if ($1 != order) {
        finish()
        order = $1
        customer = $2
    }
    article = article_in($3)
    quantity = quantity_in($4)
    line_net = net_of(article, quantity)
    line_tax = tax_of(line_net, group_of[article])
    trace(order, article, quantity, line_net, line_tax)
    net += line_net
    tax += line_tax
}

END {
    if (failed) {
        exit 2
    }
    finish()
    print_total("sum", "", all_net, all_tax)
}

# Prints the order that is complete and begins another one.
function finish() {
    if (order != "") {
        print_total(order, customer, net, tax)
        all_net += net
        all_tax += tax
    }
    net = tax = 0
}
