import Glibc

/// Standard output without a buffer. It uses colours only in a terminal.
final class Screen {
    enum Style: String {
        case plain = ""
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
    }

    let isTerminal: Bool
    private let hasColours: Bool
    private var isPassing = false

    init() {
        isTerminal = isatty(1) == 1
        // https://no-color.org: set, and not empty.
        let refused = Self.variable("NO_COLOR").map { !$0.isEmpty } ?? false
        hasColours = isTerminal && !refused && Self.variable("TERM") != "dumb"
    }

    func line(_ text: String = "") { write("\(cleared)\(text)\n") }

    /// Prints a line that the next one replaces. If the output is not a terminal, it prints
    /// nothing.
    func passing(_ text: String) {
        guard isTerminal else { return }
        write("\(cleared)\(text)")
        isPassing = true
    }

    func styled(_ text: String, _ style: Style) -> String {
        hasColours && style != .plain ? "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m" : text
    }

    private var cleared: String {
        defer { isPassing = false }
        return isPassing ? "\r\u{1b}[K" : ""
    }

    /// Writes the text. If the reader has closed the pipe, the demo continues without output.
    private func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(1, rest.baseAddress, rest.count)
                if count > 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno != EINTR {
                    return
                }
            }
        }
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
