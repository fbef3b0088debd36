# What it costs to send an order: see docs/parcels.md.

# What a box weighs, by what is in it, in grams.
function box_grams(grams) {
    return grams > 5000 ? 350 : 120
}

# The price of a parcel of so many grams, its box included, in cents.
function parcel_price(grams, zone,    kilos) {
    kilos = packs_for(grams + box_grams(grams), 1000)
    if (zone == "far") {
        return 950 + 160 * (kilos - 1)
    }
    if (zone == "island") {
        return 1400 + 210 * (kilos - 1)
    }
    return 490 + 80 * (kilos - 1)
}

# What a customer pays for it: large orders travel for nothing, but not to an island.
function parcel_charge(grams, zone, gross) {
    if (grams == 0) {
        return 0
    }
    if (gross >= 15000 && zone != "island") {
        return 0
    }
    return parcel_price(grams, zone)
}
