# Points for faithful customers: see docs/points.md.

# The points for an order: one for a full euro, twice as many on Tuesdays.
function points_for(gross, day) {
    if (day == 2) {
        return 2 * int(gross / 100)
    }
    return int(gross / 100)
}

# What a customer is called who has so many points.
function points_rank(points) {
    if (points >= 2500) {
        return "gold"
    }
    if (points >= 800) {
        return "silver"
    }
    return "paper"
}

# What points are worth when they are paid out: 3 cents for each full ten, nothing below 100.
function points_worth(points) {
    if (points < 100) {
        return 0
    }
    return 3 * int(points / 10)
}
