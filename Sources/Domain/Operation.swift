import Bytes
import Crypto
import World

/// One intended change. Everything that the change makes up (ids, nonces, codes, numbers) follows from the operation's
/// id and the installation's key, so a change that is carried out again after a crash is the same change.
public struct Operation: Sendable {
    public let id: OperationID
    /// It may have been carried out before, and nobody here knows: the store looks first.
    public let mayHaveRun: Bool
    /// Of a request that came before: when it came first.
    public let begunAt: Timestamp?
    private let key: Secret

    init(id: OperationID, mayHaveRun: Bool, begunAt: Timestamp? = nil, key: Secret) {
        self.id = id
        self.mayHaveRun = mayHaveRun
        self.begunAt = begunAt
        self.key = key
    }

    /// Up to 32 bytes that only this installation can know, different for every label.
    public func secret(_ label: String, count: Int) -> [UInt8] {
        Array(HMAC.sha256(key: key, id.bytes + Array(label.utf8)).prefix(count))
    }

    public func identifier<Thing>(_ label: String) -> Identifier<Thing> {
        guard let identifier = Identifier<Thing>(secret(label, count: 16)) else {
            fatalError("HMAC-SHA-256 gave fewer than 16 bytes")  // our own bug
        }
        return identifier
    }

    /// Decimal digits, every one equally likely.
    public func digits(_ label: String, count: Int) -> String {
        let value = secret(label, count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let bound = (0..<count).reduce(UInt64(1)) { bound, _ in bound * 10 }
        // 64 bits against at most 10^6: the bias is below 2^-44.
        let plain = String(value % bound)
        return String(repeating: "0", count: count - plain.utf8.count) + plain
    }
}

/// Where operations come from: a new one for every request, or the one that a repeated request had before.
public struct Operations: Sendable {
    private let key: Secret
    private let randomness: any Randomness

    public init(masterKey: Secret, randomness: any Randomness) {
        key = Secret(HMAC.sha256(key: masterKey, Array("twoefay operations".utf8)))
        self.randomness = randomness
    }

    public func new() -> Operation { Operation(id: draw(), mayHaveRun: false, key: key) }

    public func again(_ id: OperationID, begunAt: Timestamp? = nil) -> Operation {
        Operation(id: id, mayHaveRun: true, begunAt: begunAt, key: key)
    }

    /// The operation that this content always is: a repeated enrolment of one key is one operation.
    public func fixed(_ label: String, _ content: [UInt8]) -> Operation {
        let bytes = HMAC.sha256(key: key, Array(label.utf8) + [0] + content).prefix(16)
        guard let id = OperationID(bytes) else { fatalError("HMAC-SHA-256 gave fewer than 16 bytes") }  // our own bug
        return Operation(id: id, mayHaveRun: true, key: key)
    }

    public func draw<Thing>() -> Identifier<Thing> {
        guard let identifier = Identifier<Thing>(randomness.bytes(16)) else {
            fatalError("16 bytes asked of the randomness, another number given")  // our own bug
        }
        return identifier
    }
}
