import JSON
import World

/// The content of a challenge that the phone shows, read from the exact bytes that the phone signs.
///
/// Invariant: the person sees everything that the signature covers, except the nonce `request`. The
/// phone therefore refuses a context that it cannot show faithfully: with another version, a
/// missing member, or a text with invisible characters. Tested in `ShownContextTests.swift`.
public struct ShownContext: Sendable, Equatable {
    public struct Line: Sendable, Equatable {
        public let label: String
        public let value: String

        public init(_ label: String, _ value: String) {
            self.label = label
            self.value = value
        }
    }

    public let website: String
    public let displayName: String
    public let username: String
    public let service: String?
    public let action: String?
    /// The labelled lines that the website added.
    public let details: [Line]
    public let ip: String?
    public let place: String?
    public let userAgent: String?
    /// The website's nonce, which is not shown.
    public let request: String?
    /// The number of digits that the person must enter; 0 for none.
    public let numberDigits: Int
    /// The phone to be bound, if the challenge is an approval to bind one; otherwise nil.
    public let device: String?
    public let createdAt: Timestamp
    public let expiresAt: Timestamp

    /// The reason why the phone must not sign this context.
    public struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// The version that this phone knows. It ignores unknown members: a relay that adds a member
    /// that must be shown raises the version.
    static let version: Int64 = 1

    public init(_ bytes: [UInt8]) throws(Malformed) {
        let object: JSONObject
        do throws(JSONError) {
            guard let read = try JSONReader.read(bytes).object else { throw JSONError(offset: 0, kind: .incomplete) }
            object = read
        } catch {
            throw Malformed(description: "its context cannot be read: \(error.message)")
        }
        guard object["v"]?.integer == Self.version else {
            throw Malformed(description: "its context has a version that this phone does not know; update the app")
        }
        let reading = ContextReader(object: object)
        website = try reading.needed("website")
        displayName = try reading.needed("display_name")
        username = try reading.needed("username")
        service = try reading.text("service")
        action = try reading.text("action")
        ip = try reading.text("ip")
        place = try reading.text("place")
        userAgent = try reading.text("user_agent")
        request = try reading.text("request")
        device = try reading.text("device")
        details = try reading.details()
        guard let digits = object["number_digits"]?.integer, (0...9).contains(digits) else {
            throw Malformed(description: "its context has no number_digits")
        }
        numberDigits = Int(digits)
        createdAt = try reading.moment("created_at")
        expiresAt = try reading.moment("expires_at")
    }

    /// The lines to show, in this order: the user, the request, then its origin.
    public var lines: [Line] {
        var lines = [Line("user", username)]
        func add(_ label: String, _ value: String?) {
            if let value { lines.append(Line(label, value)) }
        }
        add("service", service)
        add("action", action)
        lines += details
        add("device", device)
        add("place", place)
        add("ip", ip)
        add("with", userAgent)
        lines.append(Line("requested at", createdAt.rfc3339))
        return lines
    }
}

/// Reads the members of a context. It refuses a text that cannot be shown unchanged, because a
/// person cannot agree to a text that they do not see.
private struct ContextReader {
    let object: JSONObject

    func text(_ name: String) throws(ShownContext.Malformed) -> String? {
        guard let value = object[name], !value.isNull else { return nil }
        guard let text = value.string else { throw malformed("\(name) is not a text") }
        try check(text, name)
        return text
    }

    func needed(_ name: String) throws(ShownContext.Malformed) -> String {
        guard let text = try text(name) else { throw malformed("\(name) is missing") }
        return text
    }

    func moment(_ name: String) throws(ShownContext.Malformed) -> Timestamp {
        guard let moment = object[name]?.string.flatMap({ Timestamp(rfc3339: $0) }) else {
            throw malformed("\(name) is not a time")
        }
        return moment
    }

    func details() throws(ShownContext.Malformed) -> [ShownContext.Line] {
        guard let value = object["details"], !value.isNull else { return [] }
        guard let array = value.array else { throw malformed("details is not a list") }
        var lines: [ShownContext.Line] = []
        for entry in array {
            guard let label = entry.object?["label"]?.string, let value = entry.object?["value"]?.string else {
                throw malformed("a detail has no label or no value")
            }
            try check(label, "details")
            try check(value, "details")
            lines.append(.init(label, value))
        }
        return lines
    }

    /// Refuses three kinds of characters. Control characters could overwrite the screen. Marks of
    /// text direction could reverse an amount. Invisible characters could make two different texts
    /// look equal.
    private func check(_ text: String, _ name: String) throws(ShownContext.Malformed) {
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0..<0x20, 0x7f..<0xa0, 0xad, 0x34f, 0x61c, 0x115f...0x1160, 0x17b4...0x17b5, 0x180b...0x180f,
                0x200b...0x200f, 0x2028...0x202e, 0x2060...0x206f, 0x3164, 0xfe00...0xfe0f, 0xfeff, 0xffa0,
                0xfff0...0xfffb, 0x1bca0...0x1bca3, 0x1d173...0x1d17a, 0xe0000...0xe0fff:
                throw malformed("\(name) contains a character that cannot be shown")
            default: break
            }
        }
    }

    private func malformed(_ what: String) -> ShownContext.Malformed {
        ShownContext.Malformed(description: "its context is malformed: \(what)")
    }
}
