/// The fields of a form or query as browsers encode them: `name=value&name=value`, with percent
/// escapes and `+` for spaces.
struct FormText: Sendable {
    private var values: [String: String] = [:]

    /// Parses the text. If a name occurs twice, the first one counts. A pair that cannot be read is
    /// ignored.
    init(_ text: some Collection<UInt8>) {
        for pair in text.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = Self.decoded(parts[0]), let value = Self.decoded(parts[1]),
                values[name] == nil
            else { continue }
            values[name] = value
        }
    }

    init(query: String?) { self.init((query ?? "").utf8) }

    subscript(name: String) -> String? { values[name] }

    private static func decoded(_ text: some Collection<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var digits: [UInt8]?
        for byte in text {
            if let begun = digits {
                guard let digit = Character(UnicodeScalar(byte)).hexDigitValue else { return nil }
                guard let high = begun.first else {
                    digits = [UInt8(digit)]
                    continue
                }
                bytes.append(high << 4 | UInt8(digit))
                digits = nil
            } else if byte == UInt8(ascii: "%") {
                digits = []
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return digits == nil ? String(validating: bytes, as: UTF8.self) : nil
    }
}
