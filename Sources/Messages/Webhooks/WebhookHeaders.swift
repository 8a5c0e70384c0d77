import Bytes
import Crypto
import World

/// The id of a webhook, which is the same for every attempt. It is visible ASCII without a full
/// stop, because full stops separate id, time and body in the signed text.
public struct WebhookID: Sendable, Hashable, CustomStringConvertible {
    public let text: String

    public init?(_ text: String) {
        guard (1...256).contains(text.utf8.count),
            text.utf8.allSatisfy({ 0x21...0x7e ~= $0 && $0 != UInt8(ascii: ".") })
        else { return nil }
        self.text = text
    }

    public var description: String { text }
}

/// The three header fields of a webhook (Standard Webhooks 1.0): its id, its time of sending and
/// its signatures.
public struct WebhookHeaders: Sendable, Equatable {
    public enum Field: String, Sendable, CaseIterable {
        case id = "webhook-id"
        case timestamp = "webhook-timestamp"
        case signature = "webhook-signature"
    }

    public let id: WebhookID
    /// The time of sending, in whole seconds.
    public let sentAt: Timestamp
    let signatures: [WebhookSignature]
    private let signatureText: String

    /// Signs a body with every valid secret. Each attempt is signed anew, since receivers refuse
    /// old signatures.
    public init(id: WebhookID, body: [UInt8], at now: Timestamp, secrets: [WebhookSecret]) {
        self.id = id
        sentAt = Timestamp(seconds: now.seconds)
        let content = Self.content(id, sentAt, body)
        signatures = secrets.map { WebhookSignature(of: content, $0) }
        signatureText = signatures.map(\.text).joined(separator: " ")
    }

    /// Reads the fields of a received webhook. Names may be in any case and among other fields;
    /// each of the three must occur once.
    public init(_ fields: some Sequence<(name: String, value: String)>) throws(WebhookFault) {
        var found: [Field: String] = [:]
        for (name, value) in fields {
            guard let field = Field(rawValue: name.lowercased()) else { continue }
            guard found.updateValue(value, forKey: field) == nil else { throw .repeated(field) }
        }
        func value(_ field: Field) throws(WebhookFault) -> String {
            guard let value = found[field] else { throw .missing(field) }
            return value
        }
        let (id, timestamp, signature) = (try value(.id), try value(.timestamp), try value(.signature))
        guard let id = WebhookID(id) else { throw .malformed(.id) }
        guard let sentAt = Self.moment(timestamp) else { throw .malformed(.timestamp) }
        guard let signatures = WebhookSignature.list(signature) else { throw .malformed(.signature) }
        self.id = id
        self.sentAt = sentAt
        self.signatures = signatures
        signatureText = signature
    }

    /// The fields to send, together with exactly the body that was signed.
    public var fields: [(name: String, value: String)] {
        [
            (Field.id.rawValue, id.text), (Field.timestamp.rawValue, String(sentAt.seconds)),
            (Field.signature.rawValue, signatureText),
        ]
    }

    /// Returns the signed text. The time equals the received text, because only its shortest form
    /// is accepted.
    func content(_ body: [UInt8]) -> [UInt8] { Self.content(id, sentAt, body) }

    private static func content(_ id: WebhookID, _ sentAt: Timestamp, _ body: [UInt8]) -> [UInt8] {
        Array("\(id.text).\(sentAt.seconds).".utf8) + body
    }

    /// Parses a time in seconds: decimal digits without leading zeros, at most 12, which covers
    /// every four-digit year.
    private static func moment(_ text: String) -> Timestamp? {
        guard text.utf8.count <= 12, let seconds = Int64(text), seconds >= 0, String(seconds) == text else {
            return nil
        }
        return Timestamp(seconds: seconds)
    }
}

/// An entry of `webhook-signature` in the version that this module supports.
struct WebhookSignature: Sendable, Equatable {
    private static let version = "v1"
    /// The maximum length of a list in bytes, far more than a sender with two secrets writes.
    private static let longestList = 4096

    let code: [UInt8]

    init(of content: [UInt8], _ secret: WebhookSecret) {
        code = HMAC.sha256(key: secret.key, content)
    }

    private init(code: [UInt8]) { self.code = code }

    var text: String { "\(Self.version),\(Base64.encode(code))" }

    /// Parses a list and returns the entries of version `v1`. It skips what is no HMAC of this version:
    /// a later sender may add other entries. Returns nil if the list is empty or too long.
    static func list(_ text: String) -> [WebhookSignature]? {
        guard (1...longestList).contains(text.utf8.count) else { return nil }
        var signatures: [WebhookSignature] = []
        for entry in text.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false) {
            guard let comma = entry.firstIndex(of: UInt8(ascii: ",")), entry[..<comma].elementsEqual(version.utf8),
                let code = Base64.decode(String(decoding: entry[entry.index(after: comma)...], as: UTF8.self)),
                code.count == 32
            else { continue }
            signatures.append(WebhookSignature(code: code))
        }
        return signatures
    }
}
