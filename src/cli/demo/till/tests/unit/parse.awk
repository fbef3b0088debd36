function test_parse() {
    cents_of["B-0001"] = 1999
    is("is_quantity(\"1\")", is_quantity("1"), 1)
    is("is_quantity(\"120\")", is_quantity("120"), 1)
    is("is_quantity(\"0\")", is_quantity("0"), 0)
    is("is_quantity(\"1.5\")", is_quantity("1.5"), 0)
    is("quantity_in(\"12\")", quantity_in("12"), 12)
    is("article_in(\"B-0001\")", article_in("B-0001"), "B-0001")
    is("is_date(\"2024-02-29\")", is_date("2024-02-29"), 1)
    is("is_date(\"2023-02-29\")", is_date("2023-02-29"), 0)
    is("is_date(\"2024-01-01\")", is_date("2024-01-01"), 1)
    is("is_date(\"2024-12-31\")", is_date("2024-12-31"), 1)
    is("is_date(\"2024-13-01\")", is_date("2024-13-01"), 0)
    is("is_date(\"2024-00-10\")", is_date("2024-00-10"), 0)
    is("is_date(\"2024-05-00\")", is_date("2024-05-00"), 0)
    is("is_date(\"2024-06-31\")", is_date("2024-06-31"), 0)
    is("is_date(\"2024-06\")", is_date("2024-06"), 0)
}
