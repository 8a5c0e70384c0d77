import Bytes
import Crypto

/// Computes and verifies the MACs of signed rows.
///
/// Anyone who can write to the store could add a phone, a recovery code or an answered challenge.
/// Each row that can help to an approval therefore has a MAC (HMAC-SHA-256, RFC 2104) in its column
/// `mac`. The MAC's key is derived from the master key and is never in the store. The MAC covers
/// the table's name and the columns that `SignedTable` names, with the values that the database
/// returns.
///
/// Columns that only take rights away (locked, suspended, used) are not covered by value. The MAC
/// covers the rights that the row had when it was signed. A MAC made for an active user stays valid
/// if an operator locks the user by SQL. A MAC made for a locked user is not valid if somebody
/// unlocks the user by SQL.
///
/// A MAC does not protect against deleted rows or against a restored older row: see the threat
/// model.
public struct RowAuthenticator: Sendable {
    public struct Key: Sendable {
        public let id: String
        /// Whether only other relays may sign with the key so far; this relay verifies with it.
        public let isNext: Bool
        fileprivate let secret: Secret
        fileprivate let tag: [UInt8]

        public init(id: String, secret: Secret, isNext: Bool = false) {
            self.id = id
            self.isNext = isNext
            self.secret = secret.locked()
            tag = Self.tag(of: id)
        }

        /// The first bytes of every MAC that was made with the key.
        static func tag(of id: String) -> [UInt8] { Array(SHA256.hash(Array(id.utf8)).prefix(tagBytes)) }
    }

    static let tagBytes = 4

    private let keys: [Key]
    private let current: Key

    /// Creates an authenticator. The keys are ordered as in `Sealer`: the newest first. The first
    /// key that is not next signs.
    public init(keys: [Key]) throws(CryptoFailure) {
        guard let current = keys.first(where: { !$0.isNext }) else { throw CryptoFailure("signing rows needs a key") }
        self.keys = keys
        self.current = current
    }

    /// Computes the MAC of a row with the current key.
    ///
    /// - Parameter rights: one bit for each of the table's rights that the row has now.
    func mac(of values: [SQLValue], in table: SignedTable, rights: Int64) -> [UInt8] {
        mac(of: values, in: table, rights: rights, under: current)
    }

    /// Whether a relay signed these values together with these rights, or with more of them.
    func isGenuine(_ mac: [UInt8], of values: [SQLValue], in table: SignedTable, rights: Int64) -> Bool {
        guard let key = keys.first(where: { mac.starts(with: $0.tag) }) else { return false }
        for signed in table.allRights where signed & rights == rights {
            if Secret.matches(mac, self.mac(of: values, in: table, rights: signed, under: key)) { return true }
        }
        return false
    }

    private var oldKeys: [Key] { keys.filter { !$0.isNext && $0.id != current.id } }
    var hasOldKeys: Bool { !oldKeys.isEmpty }

    func knows(_ mac: [UInt8]) -> Bool { keys.contains { mac.starts(with: $0.tag) } }

    func keyID(tag: [UInt8]) -> String? { keys.first { $0.tag == tag }?.id }

    /// Whether the MAC was made with an older key than the current one.
    func isStale(_ mac: [UInt8]) -> Bool { oldKeys.contains { mac.starts(with: $0.tag) } }

    private func mac(of values: [SQLValue], in table: SignedTable, rights: Int64, under key: Key) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(512)
        append(.text(table.name), to: &message)
        append(.integer(rights), to: &message)
        for value in values { append(value, to: &message) }
        return key.tag + HMAC.sha256(key: key.secret, message)
    }

    /// Appends a type, a length and the bytes, so that two different lists of values never give the
    /// same message.
    private func append(_ value: SQLValue, to message: inout [UInt8]) {
        func append(_ type: UInt8, _ bytes: some Collection<UInt8>) {
            message.append(type)
            withUnsafeBytes(of: UInt32(clamping: bytes.count).bigEndian) { message.append(contentsOf: $0) }
            message.append(contentsOf: bytes)
        }
        switch value {
        case .null: message.append(0)
        case .personal: preconditionFailure("a row of the store has no unresolved values")
        case .integer(let number): append(1, withUnsafeBytes(of: number.bigEndian) { Array($0) })
        case .text(let text): append(2, text.utf8)
        case .blob(let bytes): append(3, bytes)
        }
    }
}
