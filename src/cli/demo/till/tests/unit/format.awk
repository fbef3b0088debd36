function test_format() {
    is("to_right(\"7\", 3)", to_right("7", 3), "  7")
    is("to_right(\"1234\", 3)", to_right("1234", 3), "1234")
    is("cut_to(\"ada\", 5)", cut_to("ada", 5), "ada")
    is("cut_to(\"berta\", 5)", cut_to("berta", 5), "berta")
    is("cut_to(\"cecily\", 5)", cut_to("cecily", 5), "ceci.")
}
