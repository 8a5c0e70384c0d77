/// Writes JSON without spaces and with members in their order, so the same value always gives the
/// same bytes.
public enum JSONWriter {
    public static func write(_ value: JSONValue) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        append(value, to: &bytes)
        return bytes
    }

    public static func write(_ object: JSONObject) -> [UInt8] { write(.object(object)) }

    /// Writes JSON as text, for display and logs.
    public static func text(_ value: JSONValue) -> String { String(decoding: write(value), as: UTF8.self) }

    public static func append(_ value: JSONValue, to bytes: inout [UInt8]) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        // JSON cannot represent infinity. Only our own arithmetic could produce one.
        case .number(let value): bytes.append(contentsOf: (value.isFinite ? value.description : "null").utf8)
        case .string(let value): append(value, to: &bytes)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(value, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                append(member.value, to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private static func append(_ string: String, to bytes: inout [UInt8]) {
        var string = string
        bytes.append(UInt8(ascii: "\""))
        string.withUTF8 { text in
            var start = 0
            while true {
                let end = PlainRun(in: text, from: start).end
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<end]))
                guard end < text.count else { break }
                appendEscape(of: text[end], to: &bytes)
                start = end + 1
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func appendEscape(of byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0a: bytes.append(UInt8(ascii: "n"))
        case 0x0c: bytes.append(UInt8(ascii: "f"))
        case 0x0d: bytes.append(UInt8(ascii: "r"))
        case 0x00..<0x20:
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(byte < 0x10 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
            let low = byte & 15
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        default: bytes.append(byte)
        }
    }
}
