/// Lays out labels and texts for a screen with a fixed number of columns.
///
/// Invariant: no text can look like a row of its own. A website or an attacker may choose the
/// texts, and a text that imitates another row could deceive the person. The layout therefore
/// breaks all lines itself, and starts each continuation line with a mark in place of a label.
/// Tested in `ScreenTests.swift`.
public enum ScreenRows {
    /// The greatest width of the label column. A longer label continues in the next line.
    private static let widestLabel = 24
    private static let mark = "| "
    private static let indent = 2

    public static func text(
        _ title: String, _ rows: [(label: String, text: String)], columns: Int
    ) -> String {
        // Some terminals wrap when the last column is used, so it stays empty.
        let room = max(columns, 20) - 1
        let rows = rows.map { row in (label: label(row.label), text: ScreenText.visible(row.text)) }
        let labels = min(rows.map { width($0.label) }.max() ?? 0, widestLabel, room / 3)
        let start = indent + labels + mark.count
        let margin = spaces(indent + labels) + mark
        var lines = wrapped(ScreenText.visible(title), first: room, then: room - start)
        var text = lines.removeFirst() + lines.map { "\n" + margin + $0 }.joined()
        for row in rows {
            let padding = spaces(max(0, labels - width(row.label)) + mark.count)
            lines = wrapped(row.label + padding + row.text, first: room - indent, then: room - start)
            text += "\n" + spaces(indent) + lines.removeFirst() + lines.map { "\n" + margin + $0 }.joined()
        }
        return text
    }

    /// Returns the visible label. An empty label would make the row look like the end of the
    /// previous one.
    private static func label(_ label: String) -> String {
        label.allSatisfy(\.isWhitespace) ? "(no label)" : ScreenText.visible(label)
    }

    /// Breaks a text where a line is full. It adds and removes no characters.
    private static func wrapped(_ text: String, first: Int, then: Int) -> [String] {
        var lines = [String.UnicodeScalarView()]
        var left = first
        for scalar in text.unicodeScalars {
            if width(scalar) > left {
                lines.append(.init())
                left = then
            }
            left -= width(scalar)
            lines[lines.count - 1].append(scalar)
        }
        return lines.map { String($0) }
    }

    private static func width(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + width($1) } }

    /// Returns the greatest width of a character. The width of non-ASCII characters depends on the
    /// screen and its font.
    private static func width(_ scalar: Unicode.Scalar) -> Int { scalar.isASCII ? 1 : 2 }

    private static func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }
}
