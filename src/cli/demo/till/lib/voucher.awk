# Vouchers: see docs/vouchers.md.

# Whether an article is a voucher, such as V-0500.
function is_voucher(article) {
    return article ~ /^V-[0-9][0-9][0-9][0-9]$/
}

# What is printed on a voucher, in cents.
function voucher_face(article) {
    return substr(article, 3, 4) + 0
}

# Whether an order is large enough for a voucher: twice its face.
function voucher_holds(face, comes_to) {
    return comes_to >= 2 * face
}

# What a voucher takes off an order that comes to so much.
function voucher_value(article, comes_to,    face) {
    face = voucher_face(article)
    if (!voucher_holds(face, comes_to)) {
        return 0
    }
    return smaller(face, comes_to)
}
