/// A text with placeholders such as `{website}`. A line with an unknown value is left out, and so
/// is a part of a line in brackets: `From {ip}[, {place}].` Literal braces and brackets are
/// doubled, outside of brackets.
struct Template: Sendable {
    private indirect enum Piece: Sendable {
        case text(String)
        case value(Placeholder)
        case optional([Piece])
    }

    struct Fault: Error {
        let message: String
    }

    private let lines: [[Piece]]

    init(_ text: String, of key: TextKey) throws(Fault) {
        guard text.unicodeScalars.count <= key.characters else {
            throw Fault(message: "is longer than \(key.characters) characters")
        }
        guard !text.unicodeScalars.contains(where: { $0 != "\n" && $0.properties.generalCategory == .control }) else {
            throw Fault(message: "must not contain control characters such as tabs")
        }
        var lines: [[Piece]] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            var parser = Parser(rest: line, key: key)
            lines.append(try parser.pieces(inBrackets: false))
        }
        if key.isOneLine, lines.count != 1 { throw Fault(message: "must be one line") }
        self.lines = lines
        try check(key, text)
    }

    /// Checks that the required values appear even if every optional value is unknown.
    private func check(_ key: TextKey, _ text: String) throws(Fault) {
        let least = text.isEmpty ? "" : write { $0.isAlwaysKnown ? "{\($0.rawValue)}" : nil }
        for name in key.required.map({ "{\($0.rawValue)}" }) where !least.contains(name) {
            throw Fault(
                message: text.contains(name)
                    ? "loses \(name) if another value in the same line or brackets is unknown"
                    : "must contain \(name)")
        }
        if least.allSatisfy(\.isWhitespace) {
            throw Fault(message: "is empty if the address, place, service and phone are unknown")
        }
    }

    /// Renders the text. Consecutive empty lines are merged, and none remains at either end.
    func write(_ value: (Placeholder) -> String?) -> String {
        var written: [String] = []
        for line in lines {
            guard let text = Self.write(line, value) else { continue }
            if text.isEmpty, written.last?.isEmpty ?? true { continue }
            written.append(text)
        }
        if written.last == "" { written.removeLast() }
        return written.joined(separator: "\n")
    }

    private static func write(_ pieces: [Piece], _ value: (Placeholder) -> String?) -> String? {
        var text = ""
        for piece in pieces {
            switch piece {
            case .text(let part): text += part
            case .value(let placeholder):
                guard let part = value(placeholder) else { return nil }
                text += part
            case .optional(let inner): text += write(inner, value) ?? ""
            }
        }
        return text
    }

    private struct Parser {
        var rest: Substring
        let key: TextKey
        private var depth = 0

        init(rest: Substring, key: TextKey) {
            self.rest = rest
            self.key = key
        }

        mutating func pieces(inBrackets: Bool) throws(Fault) -> [Piece] {
            var pieces: [Piece] = []
            var text = ""
            func withText(_ piece: Piece?) -> [Piece] {
                (text.isEmpty ? [] : [.text(text)]) + (piece.map { [$0] } ?? [])
            }
            while let sign = rest.popFirst() {
                guard "{}[]".contains(sign) else {
                    text.append(sign)
                    continue
                }
                // Within brackets, `]]` closes two levels.
                if rest.first == sign, sign != "]" || !inBrackets {
                    rest.removeFirst()
                    text.append(sign)
                    continue
                }
                switch sign {
                case "{": pieces += withText(.value(try placeholder()))
                case "[": pieces += withText(.optional(try inner()))
                case "]" where inBrackets: return pieces + withText(nil)
                default:
                    throw Fault(
                        message: "has a \(sign) without an opening one; write a literal \(sign) as \(sign)\(sign)")
                }
                text = ""
            }
            if inBrackets {
                throw Fault(message: "has a [ that is not closed in its line; write a literal [ as [[")
            }
            return pieces + withText(nil)
        }

        private mutating func inner() throws(Fault) -> [Piece] {
            depth += 1
            defer { depth -= 1 }
            guard depth <= 8 else { throw Fault(message: "has brackets nested too deeply") }
            return try pieces(inBrackets: true)
        }

        private mutating func placeholder() throws(Fault) -> Placeholder {
            guard let end = rest.firstIndex(of: "}") else {
                throw Fault(message: "has a { that is not closed in its line; write a literal { as {{")
            }
            let name = String(rest[..<end])
            rest = rest[rest.index(after: end)...]
            guard let found = Placeholder(rawValue: name), key.placeholders.contains(found) else {
                let known = key.placeholders.map { "{\($0.rawValue)}" }.joined(separator: ", ")
                let isSecret = ["code", "link", "account"].contains(name)
                let why = isSecret && key.isOneLine ? ", because mail servers log subjects" : ""
                throw Fault(message: "must not contain {\(name)}\(why); allowed are \(known)")
            }
            return found
        }
    }
}
