import HTTP
import JSON
import Phone
import TwoefayClient

/// An observer of every message that its owner sends or receives.
public typealias MessageObserver = @Sendable (Message) -> Void

/// A message between two systems of the demo.
public struct Message: Sendable {
    public enum Party: String, Sendable, CaseIterable {
        case website, relay, phone
        case pushService = "push service"
        case mailServer = "mail server"
        case textGateway = "SMS gateway"
    }

    public let from: Party
    public let to: Party
    /// The request line, or the status of an answer.
    public let head: String
    /// The header fields that are worth showing.
    public let fields: [String]
    public let body: JSONObject
    /// The number of the phone; nil if there is only one.
    public let phone: Int?

    init(_ from: Party, _ to: Party, _ head: String, fields: [String] = [], body: JSONObject, phone: Int? = nil) {
        self.from = from
        self.to = to
        self.head = head
        self.fields = fields
        self.body = body
        self.phone = phone
    }

    init(_ from: Party, _ to: Party, _ call: RelayConnection.PhoneRequest) {
        self.init(
            from, to, "\(call.method) \(call.path)", fields: call.fields.map { "\($0.name): \($0.value)" },
            body: call.body)
    }

    init(_ from: Party, _ to: Party, _ answer: RelayAnswer) {
        self.init(from, to, String(answer.status), body: answer.body)
    }

    init(_ from: Party, _ to: Party, _ call: RelayCall) {
        let fields = call.fields.filter { $0.key != "content-type" }.sorted { $0.key < $1.key }
        self.init(
            from, to, "\(call.method) \(call.path)", fields: fields.map { "\($0.key): \($0.value)" },
            body: call.body ?? [:])
    }

    init(_ from: Party, _ to: Party, _ reply: RelayReply) {
        self.init(
            from, to, String(reply.status), body: (try? JSONReader.read(reply.body))?.object ?? [:])
    }
}

extension JSONValue {
    /// The value with long texts cut, for a display that shows the structure.
    var shortened: JSONValue {
        switch self {
        case .string(let text) where text.count > 36: .string(text.prefix(24) + "…")
        case .array(let values): .array(values.map(\.shortened))
        case .object(let object): .object(JSONObject(object.members.map { ($0.name, $0.value.shortened) }))
        default: self
        }
    }
}
