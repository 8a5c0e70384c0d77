/// The content of a challenge that the app shows, read from the exact bytes that the phone signs.
///
/// Invariant: the person sees everything that the signature covers, except the nonce `request`. A
/// context that cannot be shown faithfully is therefore refused. Unknown members are ignored: a
/// member that had to be shown would come with another `v`.
public struct Context: Sendable, Equatable {
    public struct Line: Sendable, Equatable {
        public let label: String
        public let value: String
    }

    public let website: String
    public let displayName: String
    public let username: String
    public let service: String?
    /// The purpose. `enrol` and `recover` are the relay's own: see the protocol.
    public let action: String?
    /// The website's own lines. Show all of them, in this order.
    public let details: [Line]
    public let ip: String?
    public let place: String?
    public let userAgent: String?
    /// The phone to be bound, if `action` is `enrol`.
    public let device: String?
    /// The website's nonce, which is not shown.
    public let request: String?
    /// The number of digits to ask for; 0 for none.
    public let numberDigits: Int
    public let createdAt: Timestamp
    public let expiresAt: Timestamp

    /// The reason why the phone shows nothing and signs nothing.
    public struct Refused: Error, Sendable, Equatable {
        public let reason: String
    }

    public init(_ bytes: [UInt8]) throws(Refused) {
        guard let object = JSONReader.object(bytes) else {
            throw Refused(reason: "its context is not an object of I-JSON")
        }
        guard object["v"]?.integer == 1 else {
            throw Refused(reason: "its context has a version that this app does not know: update the app")
        }
        func shown(_ value: JSONValue?, _ name: String) throws(Refused) -> String {
            guard let text = value?.string else { throw Refused(reason: "\(name) is missing or not a text") }
            guard text.unicodeScalars.allSatisfy(ScreenText.isVisible) else {
                throw Refused(reason: "\(name) contains a character that cannot be shown")
            }
            return text
        }
        func text(_ name: String) throws(Refused) -> String? {
            guard let value = object[name], !value.isNull else { return nil }
            return try shown(value, name)
        }
        func time(_ name: String) throws(Refused) -> Timestamp {
            guard let time = object[name]?.string.flatMap({ Timestamp(rfc3339: $0) }) else {
                throw Refused(reason: "\(name) is not a time")
            }
            return time
        }
        website = try shown(object["website"], "website")
        displayName = try shown(object["display_name"], "display_name")
        username = try shown(object["username"], "username")
        service = try text("service")
        action = try text("action")
        var lines: [Line] = []
        if let details = object["details"], !details.isNull {
            guard let list = details.array else { throw Refused(reason: "details is not a list") }
            for entry in list {
                lines.append(
                    Line(
                        label: try shown(entry.object?["label"], "a label of details"),
                        value: try shown(entry.object?["value"], "a value of details")))
            }
        }
        details = lines
        ip = try text("ip")
        place = try text("place")
        userAgent = try text("user_agent")
        device = try text("device")
        request = try text("request")
        guard let digits = object["number_digits"]?.integer, (0...9).contains(digits) else {
            throw Refused(reason: "number_digits is missing")
        }
        numberDigits = Int(digits)
        createdAt = try time("created_at")
        expiresAt = try time("expires_at")
    }
}
