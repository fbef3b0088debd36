# Days and due dates: see docs/dates.md.

# Whether a year has a 29 February.
function is_leap(year) {
    if (year % 400 == 0) {
        return 1
    }
    return year % 4 == 0 && year % 100 != 0
}

# The number of days in a month.
function days_in(year, month) {
    if (month == 2) {
        return is_leap(year) ? 29 : 28
    }
    if (month == 4 || month == 6 || month == 9 || month == 11) {
        return 30
    }
    return 31
}

# The days since the last day of the year before the first: two of them tell how far apart dates are.
function day_number(year, month, day) {
    if (month < 3) {
        year = year - 1
        month = month + 12
    }
    return 365 * year + int(year / 4) - int(year / 100) + int(year / 400) \
        + int((153 * month - 457) / 5) + day - 306
}

# The day of the week: 0 is Sunday, 6 is Saturday.
function weekday(year, month, day) {
    return day_number(year, month, day) % 7
}

# The days an invoice may wait: two weeks, and to the Monday if that is a weekend.
function days_to_pay(year, month, day,    due) {
    due = (weekday(year, month, day) + 14) % 7
    if (due == 6) {
        return 16
    }
    if (due == 0) {
        return 15
    }
    return 14
}
