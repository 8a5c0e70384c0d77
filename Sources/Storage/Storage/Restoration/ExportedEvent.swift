import Bytes
import Domain
import JSON
import World

/// A line of an export of the audit (`twoefay audit export`).
public struct ExportedEvent: Sendable, Equatable {
    /// The reason why a line is not a row of the audit.
    public struct Malformed: Error, Sendable, Equatable {
        public let reason: String
    }

    public let operation: [UInt8]
    public let at: Timestamp
    public let event: String
    public let website: String?
    public let user: UserID?
    public let device: DeviceID?
    public let outcome: String?
    public let proof: String?
    public let note: String?
    /// The end that a renewal gave to the former keys of a website.
    public let othersEnd: Timestamp?

    public init(line: some Collection<UInt8>) throws(Malformed) {
        let value: JSONValue
        do {
            value = try JSONReader.read(Array(line))
        } catch {
            throw Malformed(reason: "it is not JSON: \(error)")
        }
        guard let object = value.object else { throw Malformed(reason: "it is not an object") }
        guard let event = object["event"]?.string else { throw Malformed(reason: "event is missing") }
        guard let operation = object["operation"]?.string.flatMap({ Hex.decode($0) }), operation.count == 16 else {
            throw Malformed(reason: "operation must be 32 hexadecimal digits")
        }
        guard let at = object["at"]?.string.flatMap({ Timestamp(rfc3339: $0) }) else {
            throw Malformed(reason: "at must be a time")
        }
        self.event = event
        self.operation = operation
        self.at = at
        website = object["website"]?.string
        user = try Self.id("user", object)
        device = try Self.id("device", object)
        outcome = object["outcome"]?.string
        proof = object["proof"]?.string
        note = object["note"]?.string
        othersEnd = object["changes"]?.object?["others_end"]?.object?["after"]?.string
            .flatMap { Timestamp(rfc3339: $0) }
    }

    private static func id<Thing>(
        _ name: String, _ object: JSONObject
    ) throws(Malformed) -> Identifier<Thing>? {
        guard let value = object[name] else { return nil }
        guard let id = value.string.flatMap({ Identifier<Thing>($0) }) else {
            throw Malformed(reason: "\(name) must be 32 hexadecimal digits")
        }
        return id
    }
}
