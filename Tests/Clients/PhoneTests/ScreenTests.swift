import Testing

@testable import Phone

/// Text from websites and relays on the screen of the person who decides.
struct ScreenTests {
    @Test(arguments: [
        ("alice Müller 値段 12.00 €", "alice Müller 値段 12.00 €"), ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
        ("a\r\nb\tc\u{7f}\u{9b}", "a\\u{d}\\u{a}b\\u{9}c\\u{7f}\\u{9b}"),
        // Characters that change the reading direction.
        ("1\u{202e}2\u{2066}3\u{61c}4\u{200f}", "1\\u{202e}2\\u{2066}3\\u{61c}4\\u{200f}"),
        // Characters without a width or a visible form.
        ("a\u{200b}b\u{200d}c\u{feff}d\u{ad}e\u{2060}", "a\\u{200b}b\\u{200d}c\\u{feff}d\\u{ad}e\\u{2060}"),
        ("a\u{3164}b\u{fe0f}c\u{e0041}d\u{34f}", "a\\u{3164}b\\u{fe0f}c\\u{e0041}d\\u{34f}"),
        ("a\u{2028}b\u{e000}c", "a\\u{2028}b\\u{e000}c"),
    ])
    func invisibleCharactersAreMadeVisible(text: String, seen: String) {
        #expect(ScreenText.visible(text) == seen)
    }

    @Test func shortTextFitsItsRow() {
        let rows = [("user", "alice"), ("amount", "12.00 EUR")]
        #expect(
            ScreenRows.text("The Shop (shop) asks", rows, columns: 80) == """
                The Shop (shop) asks
                  user    alice
                  amount  12.00 EUR
                """)
    }

    /// A user agent can contain exactly as many spaces as it takes to start a new row on the
    /// screen.
    @Test(arguments: [20, 33, 80]) func textCannotForgeARow(columns: Int) {
        let forged = "  amount  1.00 EUR"
        for count in 0..<(columns * 2) {
            for filler in ["x", " ", "\u{3000}", "値"] {
                let agent = String(repeating: filler, count: count) + forged + "\n" + forged
                let shown = ScreenRows.text(
                    "The Shop", [("with", agent), ("amount", "1000.00 EUR")], columns: columns)
                let lines = shown.split(separator: "\n", omittingEmptySubsequences: false)
                #expect(lines.allSatisfy { Self.widest($0) < columns })
                // The screen has two rows. Each other line is marked as a continuation.
                let rows = lines.dropFirst().filter { !$0.hasPrefix("    ") || !$0.contains("| ") }
                #expect(rows.count == 2)
                #expect(rows.first?.hasPrefix("  with  ") == true && rows.last?.hasPrefix("  amount  1") == true)
            }
        }
    }

    @Test func labelCannotForgeARow() throws {
        let label = String(repeating: "long ", count: 12)
        let shown = ScreenRows.text("T", [(label, "1.00 EUR"), ("  ", "blank"), ("to", "Bob")], columns: 40)
        let lines = shown.split(separator: "\n")
        #expect(lines.filter { !$0.hasPrefix("    ") }.count == 4, "the title and three rows: \(shown)")
        #expect(shown.contains("(no label)"))
        let joined = lines.map { $0.split(separator: "| ").last.map(String.init) ?? "" }.joined()
        #expect(joined.contains(label + "  1.00 EUR"), "\(joined)")
    }

    @Test func longTitleIsNotARow() {
        let title = String(repeating: "x", count: 79) + "  amount  1.00 EUR asks: is this you?"
        let lines = ScreenRows.text(title, [("user", "alice")], columns: 80).split(separator: "\n")
        #expect(lines.count == 3 && lines[1] == "      |   amount  1.00 EUR asks: is this you?")
        #expect(lines[2] == "  user  alice")
    }

    private static func widest(_ line: Substring) -> Int {
        line.unicodeScalars.reduce(0) { $0 + ($1.isASCII ? 1 : 2) }
    }
}
