/// The `traceparent` of a request (W3C Trace Context): the trace of the caller, and the caller's
/// step in it.
///
/// The relay is a station on the way that records no steps of its own. Its log names the trace, and
/// its webhooks about the login carry the value on.
///
/// Tests: `DomainTests/TraceParentTests.swift`.
public struct TraceParent: Sendable, Equatable {
    /// The header field, in a request and in a webhook.
    public static let field = "traceparent"

    /// The value in the form of version 00, which every recipient can read.
    public let text: String

    /// The trace-id: 32 hexadecimal digits that the caller chose.
    public var trace: String { String(text.dropFirst(3).prefix(32)) }

    /// Reads a value. Nil if it is malformed: the request then counts as one without a trace.
    ///
    /// A version after 00 may append parts, which are left out, and only the lowest of its flags
    /// is known.
    public init?(_ value: String) {
        let bytes = Array(value.utf8.prefix(56))
        guard bytes.count >= 55, bytes[2] == Self.dash, bytes[35] == Self.dash, bytes[52] == Self.dash,
            let version = Self.number(bytes[0..<2]), version != 0xff,
            let flags = Self.number(bytes[53..<55]),
            Self.names(bytes[3..<35]), Self.names(bytes[36..<52])
        else { return nil }
        if bytes.count > 55 { guard version > 0, bytes[55] == Self.dash else { return nil } }
        let ids = String(decoding: bytes[3..<52], as: UTF8.self)
        text = "00-\(ids)-\(Self.digits(version == 0 ? flags : flags & 1))"
    }

    private static let dash = UInt8(ascii: "-")

    /// Whether the bytes are an id: lowercase hexadecimal digits, not all of them zero.
    private static func names(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.allSatisfy { digit($0) != nil } && bytes.contains { $0 != UInt8(ascii: "0") }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt8? {
        var number: UInt8 = 0
        for byte in bytes {
            guard let digit = digit(byte) else { return nil }
            number = number << 4 | digit
        }
        return number
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    private static func digits(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
