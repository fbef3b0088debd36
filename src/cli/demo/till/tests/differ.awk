# Says where two texts differ that a form feed separates: at most two lines.

$0 == "\f" { second = 1; next }

second { found[++lines] = $0; next }

{ expected[++most] = $0 }

END {
    if (lines > most) {
        most = lines
    }
    for (line = 1; line <= most && shown < 2; line++) {
        if (found[line] != expected[line]) {
            print "  expected, line " line ": " expected[line]
            print "  found, line " line ":    " found[line]
            shown++
        }
    }
}
