function test_voucher() {
    is("is_voucher(\"V-0500\")", is_voucher("V-0500"), 1)
    is("is_voucher(\"B-0500\")", is_voucher("B-0500"), 0)
    is("is_voucher(\"V-500\")", is_voucher("V-500"), 0)
    is("voucher_face(\"V-0500\")", voucher_face("V-0500"), 500)
    is("voucher_face(\"V-2025\")", voucher_face("V-2025"), 2025)
    is("voucher_holds(500, 999)", voucher_holds(500, 999), 0)
    is("voucher_holds(500, 1000)", voucher_holds(500, 1000), 1)
    is("voucher_holds(500, 1001)", voucher_holds(500, 1001), 1)
    is("voucher_value(\"V-0500\", 999)", voucher_value("V-0500", 999), 0)
    is("voucher_value(\"V-0500\", 1000)", voucher_value("V-0500", 1000), 500)
    is("voucher_value(\"V-1200\", 9000)", voucher_value("V-1200", 9000), 1200)
}
