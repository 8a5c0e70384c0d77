/// Labels and texts for a screen of so many columns, where no text can look like a row that it is not: nothing is left to
/// the screen to wrap, and what goes on in a further line has a mark where a row has its label.
public enum ScreenRows {
    /// Of a label; a longer one goes on like a text.
    private static let widestLabel = 24
    private static let mark = "| "
    private static let indent = 2

    public static func text(
        _ title: String, _ rows: [(label: String, text: String)], columns: Int
    ) -> String {
        // A screen may need the last column for its own end of the line.
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

    /// A row that begins with nothing would look like the end of the one before.
    private static func label(_ label: String) -> String {
        label.allSatisfy(\.isWhitespace) ? "(no label)" : ScreenText.visible(label)
    }

    /// Cut where a line is full, so that nothing is added and nothing is lost.
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

    /// At most: how wide others are is for the screen and its font to say.
    private static func width(_ scalar: Unicode.Scalar) -> Int { scalar.isASCII ? 1 : 2 }

    private static func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }
}
