/// A log line under construction. Both formats escape text in the same way, like JSON and beyond:
/// characters that could end a line, control a terminal or change the reading direction become
/// visible ASCII.
struct LogLine {
    /// The maximum length of a value. Longer values are cut, so that a peer cannot fill the disk
    /// with one header.
    static let longestValue = 1024

    private let format: LogFormat
    private var bytes: [UInt8] = []

    init(format: LogFormat) {
        self.format = format
        bytes.reserveCapacity(256)
        if format == .json { bytes.append(UInt8(ascii: "{")) }
    }

    /// Adds a key and a value.
    /// - Parameter key: one of our keys, which need no escaping.
    mutating func add(_ key: String, _ value: LoggedValue) {
        switch format {
        case .logfmt:
            if !bytes.isEmpty { bytes.append(UInt8(ascii: " ")) }
            bytes.append(contentsOf: key.utf8)
            bytes.append(UInt8(ascii: "="))
        case .json:
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: key.utf8)
            bytes.append(contentsOf: "\":".utf8)
        }
        switch value {
        case .integer(let number): bytes.append(contentsOf: String(number).utf8)
        case .bool(let flag): bytes.append(contentsOf: (flag ? "true" : "false").utf8)
        case .text(let text):
            if format == .logfmt, Self.isPlain(text) {
                bytes.append(contentsOf: text.utf8)
            } else {
                quote(text)
            }
        }
    }

    consuming func finish() -> [UInt8] {
        if format == .json { bytes.append(UInt8(ascii: "}")) }
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// Whether logfmt needs no quotes for the text.
    private static func isPlain(_ text: String) -> Bool {
        let count = text.utf8.count
        return count > 0 && count <= longestValue
            && text.utf8.allSatisfy {
                (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=")
                    && $0 != UInt8(ascii: "\\")
            }
    }

    private mutating func quote(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        let end = bytes.count + Self.longestValue
        for scalar in text.unicodeScalars {
            guard bytes.count < end else {
                bytes.append(contentsOf: "…".utf8)
                break
            }
            switch scalar {
            case "\"", "\\":
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(UInt8(truncatingIfNeeded: scalar.value))
            case "\n": bytes.append(contentsOf: "\\n".utf8)
            case "\r": bytes.append(contentsOf: "\\r".utf8)
            case "\t": bytes.append(contentsOf: "\\t".utf8)
            case _ where Self.isHidden(scalar): escape(scalar)
            default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Whether the character is a control character, a line or paragraph separator, a mark of
    /// direction, or invisible.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f...0x9f, 0x61c, 0x200b...0x200f, 0x2028...0x202e, 0x2060...0x206f, 0xfeff, 0xfff9...0xfffb,
            0xe0000...0xe007f:
            true
        default: false
        }
    }

    private mutating func escape(_ scalar: Unicode.Scalar) {
        for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
            let digits = String(unit, radix: 16)
            bytes.append(contentsOf: "\\u".utf8)
            for _ in digits.utf8.count..<4 { bytes.append(UInt8(ascii: "0")) }
            bytes.append(contentsOf: digits.utf8)
        }
    }
}
