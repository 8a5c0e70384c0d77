import Bytes
import JSON
import World

/// The description of a challenge that the user sees and the phone signs.
public struct Context: Equatable, Sendable {
    public struct Detail: Equatable, Sendable {
        public let label: String
        public let value: String

        public init(label: String, value: String) {
            self.label = label
            self.value = value
        }
    }

    public var website: String
    public var displayName: String
    public var username: String
    public var service: String?
    public var action: String?
    public var details: [Detail]
    public var ip: String?
    /// The place of that address, from the installation's MaxMind database.
    public var place: String?
    public var userAgent: String?
    /// The website's own nonce, if it gave one.
    public var request: String?
    public var numberDigits: Int
    /// For an approval, the phone that is to be bound.
    public var device: String?
    public var createdAt: Timestamp
    public var expiresAt: Timestamp

    public init(
        website: String, displayName: String, username: String, service: String?, action: String?, details: [Detail],
        ip: String?, place: String?, userAgent: String?, request: String?, numberDigits: Int, device: String?,
        createdAt: Timestamp, expiresAt: Timestamp
    ) {
        self.website = website
        self.displayName = displayName
        self.username = username
        self.service = service
        self.action = action
        self.details = details
        self.ip = ip
        self.place = place
        self.userAgent = userAgent
        self.request = request
        self.numberDigits = numberDigits
        self.device = device
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// The exact bytes to show and to sign. Values that the website did not give are omitted, so
    /// that they differ from empty values that it did give.
    public var bytes: [UInt8] {
        var object: JSONObject = [
            "v": .integer(1), "website": .string(website), "display_name": .string(displayName),
            "username": .string(username),
        ]
        if let service { object.set("service", .string(service)) }
        if let action { object.set("action", .string(action)) }
        if !details.isEmpty {
            let list = details.map { JSONValue.object(["label": .string($0.label), "value": .string($0.value)]) }
            object.set("details", .array(list))
        }
        if let ip { object.set("ip", .string(ip)) }
        if let place { object.set("place", .string(place)) }
        if let userAgent { object.set("user_agent", .string(userAgent)) }
        if let request { object.set("request", .string(request)) }
        object.set("number_digits", .integer(Int64(numberDigits)))
        if let device { object.set("device", .string(device)) }
        object.set("created_at", .string(createdAt.rfc3339))
        object.set("expires_at", .string(expiresAt.rfc3339))
        return JSONWriter.write(.object(object))
    }
}

extension Context {
    /// Returns the values of a stored context that a push may show.
    public static func shownInPush(_ bytes: [UInt8]) -> (service: String?, ip: String?, place: String?) {
        let object = (try? JSONReader.read(bytes))?.object
        return (object?["service"]?.string, object?["ip"]?.string, object?["place"]?.string)
    }

    /// Returns the address of the login in a stored context.
    public static func ip(in bytes: [UInt8]) -> String? {
        (try? JSONReader.read(bytes))?.object?["ip"]?.string
    }

    /// Returns the website's own nonce in a stored context.
    static func request(in bytes: [UInt8]) -> String? {
        (try? JSONReader.read(bytes))?.object?["request"]?.string
    }
}
