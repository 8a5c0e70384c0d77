import HTTP

/// The preference `Prefer: wait=N` (RFC 7240). An invalid preference is no error and is ignored.
enum Preference {
    static let longestWait = 60

    /// The seconds to wait, at most `longestWait`; nil if there is no valid preference. Only the
    /// first `wait` counts.
    static func wait(_ fields: Fields) -> Int? {
        for value in fields.values("prefer") {
            for preference in value.utf8.split(separator: UInt8(ascii: ",")) {
                let pair = preference.prefix { $0 != UInt8(ascii: ";") }
                    .split(separator: UInt8(ascii: "="), maxSplits: 1).map { Substring($0).trimmed }
                guard pair.count == 2, pair[0].lowercased() == "wait" else { continue }
                var text = pair[1][...]
                if text.utf8.count >= 2, text.first == "\"", text.last == "\"" { text = text.dropFirst().dropLast() }
                guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                    let seconds = Int(text)
                else { return nil }
                return min(seconds, longestWait)
            }
        }
        return nil
    }
}

extension Substring {
    /// The text without spaces and tabs at both ends.
    var trimmed: String {
        var rest = utf8
        while let first = rest.first, Self.isSpace(first) { rest.removeFirst() }
        while let last = rest.last, Self.isSpace(last) { rest.removeLast() }
        return String(Substring(rest))
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
