import Crypto
import Relay

extension CheckedRow {
    /// The key in a writer's row of `audit_writer`; nil if it has none.
    var writerKey: P256PublicKey? { values[4].bytes.flatMap { try? P256PublicKey(x963: $0) } }
}

/// A link of a writer's chain: the digests of the audit rows of one transaction, the hash of the
/// link before it, and the writer's signature.
struct AuditLink: Sendable, Equatable {
    /// An audit row in a link.
    struct Entry: Sendable, Equatable {
        let operation: [UInt8]
        let digest: [UInt8]

        static let bytes = 48
    }

    /// The hash before the first link.
    static let start = [UInt8](repeating: 0, count: 32)

    let writer: [UInt8]
    let sequence: Int64
    /// The time by the writer's clock, in the form of the store.
    let at: String
    let former: [UInt8]
    let entries: [Entry]
    let hash: [UInt8]
    let signature: [UInt8]

    /// Makes and signs a link.
    init(
        _ place: AuditPlace, at: String, after former: [UInt8], _ entries: [Entry], key: P256PrivateKey
    ) throws(CryptoFailure) {
        writer = place.writer
        sequence = place.sequence
        self.at = at
        self.former = former
        self.entries = entries
        hash = Self.hash(writer, sequence, at, former, Self.encoded(entries))
        signature = try key.sign(Self.signed(writer, sequence, at, hash))
    }

    /// Reads a link of the store; nil if a value does not have the form of a link. SQLite stores values
    /// of any type in any column.
    init?(_ row: Row) throws(StoreFailure) {
        guard let writer = try row.value("writer").bytes, case .integer(let sequence) = try row.value("sequence"),
            case .text(let at) = try row.value("at"), let former = try row.value("former").bytes,
            let hash = try row.value("hash").bytes, let signature = try row.value("signature").bytes,
            let entries = try row.value("entries").bytes.flatMap(Self.entries)
        else { return nil }
        self.writer = writer
        self.sequence = sequence
        self.at = at
        self.former = former
        self.entries = entries
        self.hash = hash
        self.signature = signature
    }

    /// The columns from which a link is read.
    static let columns = "writer, sequence, at, former, entries, hash, signature"

    var encodedEntries: [UInt8] { Self.encoded(entries) }

    /// Whether the hash is the one of the other values, and the signature one of `key`.
    func isGenuine(_ key: P256PublicKey) -> Bool {
        hash == Self.hash(writer, sequence, at, former, encodedEntries)
            && key.verify(signature: signature, over: Self.signed(writer, sequence, at, hash))
    }

    /// The message that a writer signs. A head has all of it.
    static func signed(_ writer: [UInt8], _ sequence: Int64, _ at: String, _ hash: [UInt8]) -> [UInt8] {
        AuditRow.digest([.text("head"), .blob(writer), .integer(sequence), .text(at), .blob(hash)])
    }

    static func entries(_ bytes: [UInt8]) -> [Entry]? {
        guard bytes.count % Entry.bytes == 0 else { return nil }
        return stride(from: 0, to: bytes.count, by: Entry.bytes).map {
            Entry(operation: Array(bytes[$0..<($0 + 16)]), digest: Array(bytes[($0 + 16)..<($0 + Entry.bytes)]))
        }
    }

    private static func encoded(_ entries: [Entry]) -> [UInt8] { entries.flatMap { $0.operation + $0.digest } }

    private static func hash(
        _ writer: [UInt8], _ sequence: Int64, _ at: String, _ former: [UInt8], _ entries: [UInt8]
    ) -> [UInt8] {
        AuditRow.digest([
            .text("link"), .blob(writer), .integer(sequence), .text(at), .blob(former), .blob(entries),
        ])
    }
}
