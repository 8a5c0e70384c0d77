import Bytes
import Crypto
import World

/// An intended change. The ids that the change makes up follow from the operation's id and the installation's key, so a
/// change that is carried out again after a crash is the same change. Secrets never follow from it: `OperationSecret`.
public struct Operation: Sendable {
    public let id: OperationID
    /// It may have been carried out before, and nobody here knows: the store looks first.
    public let mayHaveRun: Bool
    /// Another process or a later request may carry it out again, so its secret has to be stored.
    public let isRepeatable: Bool
    /// Of a request that came before: when it came first.
    public let begunAt: Timestamp?
    private let key: Secret

    init(id: OperationID, mayHaveRun: Bool, isRepeatable: Bool, begunAt: Timestamp? = nil, key: Secret) {
        self.id = id
        self.mayHaveRun = mayHaveRun
        self.isRepeatable = isRepeatable
        self.begunAt = begunAt
        self.key = key
    }

    /// An id, different for every label. It is no secret.
    public func identifier<Thing>(_ label: String) -> Identifier<Thing> {
        Identifier(leading: HMAC.sha256(key: key, id.bytes + Array(label.utf8)))
    }
}

/// Where operations come from: a new one for every request, or the one that a repeated request had before.
public struct Operations: Sendable {
    private let key: Secret
    private let randomness: any Randomness

    /// - Parameter key: as `key(from:)` derives it.
    public init(key: Secret, randomness: any Randomness) {
        self.key = key
        self.randomness = randomness
    }

    public init(masterKey: Secret, randomness: any Randomness) {
        self.init(key: Self.key(from: masterKey), randomness: randomness)
    }

    /// Derives the key that operations need, from which the master key cannot be computed.
    public static func key(from masterKey: Secret) -> Secret {
        Secret(HMAC.sha256(key: masterKey, Array("twoefay operations".utf8)))
    }

    /// - Parameter isRepeatable: others will know its id and may carry it out again.
    public func new(isRepeatable: Bool = false) -> Operation {
        Operation(id: draw(), mayHaveRun: false, isRepeatable: isRepeatable, key: key)
    }

    public func again(_ id: OperationID, begunAt: Timestamp? = nil) -> Operation {
        Operation(id: id, mayHaveRun: true, isRepeatable: true, begunAt: begunAt, key: key)
    }

    /// The operation that this content always is: a repeated enrolment of one key is one operation.
    public func fixed(_ label: String, _ content: [UInt8]) -> Operation {
        let id = OperationID(leading: HMAC.sha256(key: key, Array(label.utf8) + [0] + content))
        return Operation(id: id, mayHaveRun: true, isRepeatable: true, key: key)
    }

    public func draw<Thing>() -> Identifier<Thing> {
        Identifier(leading: randomness.bytes(16))
    }
}
