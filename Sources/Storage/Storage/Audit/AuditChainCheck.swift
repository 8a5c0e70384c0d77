import Crypto
import Relay

/// The check of one chain, link by link.
struct AuditChainCheck {
    /// The key of the writer; nil if no program has signed the writer.
    let key: P256PublicKey?
    /// The number of the last link that was read or deleted by retention.
    private(set) var last: Int64 = 0
    private var hash: [UInt8]? = AuditLink.start
    private var deleted: Int64 = 0
    private var head: (sequence: Int64, hash: [UInt8])?
    private var isHeadSeen = false

    init(key: P256PublicKey?) { self.key = key }

    /// Begins after the links that retention has deleted.
    mutating func begin(after sequence: Int64, _ hash: [UInt8]) {
        guard last == 0 else { return }
        (last, deleted, self.hash) = (sequence, sequence, hash)
    }

    /// Notes the head outside of the store with which the chain is compared.
    mutating func note(_ head: AuditHead) {
        guard head.sequence > self.head?.sequence ?? 0 else { return }
        self.head = (head.sequence, head.hash)
    }

    /// Goes on to a link, and returns what is wrong with it.
    mutating func append(_ link: AuditLink) -> (link: Int64, text: String)? {
        guard link.sequence > last else {
            return (link.sequence, "retention has deleted this link, and it is here again")
        }
        let (missing, former) = (last + 1, hash)
        (last, hash) = (link.sequence, link.hash)
        if let head, head.sequence == link.sequence, head.hash == link.hash { isHeadSeen = true }
        if link.sequence > missing {
            return (missing, "the links \(missing) to \(link.sequence - 1) are missing")
        }
        guard let key, link.isGenuine(key) else { return (link.sequence, "its writer has not signed this link") }
        guard let former, former == link.former else { return (link.sequence, "the link before it is another one") }
        return nil
    }

    /// Goes on past a link that cannot be read.
    mutating func skip(_ sequence: Int64) { (last, hash) = (sequence, nil) }

    /// Returns what the chain lacks of a head; nil if it has the head, or had it before retention.
    func fault(for head: AuditHead) -> String? {
        if head.sequence <= deleted || isHeadSeen { return nil }
        guard last < head.sequence else { return "the chain has another link under this number" }
        return "the links \(last + 1) to \(head.sequence) are missing"
    }
}

/// A row that a link names.
struct ExpectedRow {
    let digest: AuditDigest
    let writer: [UInt8]
    let link: Int64
}

/// An operation as two numbers, because arrays take three times the memory.
struct AuditKey: Hashable, Comparable {
    private let high: UInt64
    private let low: UInt64

    init?(_ bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        high = bytes[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }

    var bytes: [UInt8] {
        [high, low].flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - $0 * 8)) } }
    }

    static func < (a: AuditKey, b: AuditKey) -> Bool { (a.high, a.low) < (b.high, b.low) }
}

/// A digest as four numbers.
struct AuditDigest: Equatable {
    private let first: AuditKey?
    private let second: AuditKey?

    init(_ bytes: [UInt8]) {
        first = AuditKey(Array(bytes.prefix(16)))
        second = AuditKey(Array(bytes.dropFirst(16)))
    }
}

/// An audit row as the check reads it.
struct CheckedAuditRow {
    enum Words { case right, wrong, missing }

    let id: Int64
    let operation: [UInt8]
    let event: String
    let user: [UInt8]?
    let writer: [UInt8]?
    let link: Int64?
    let digest: [UInt8]
    let words: Words

    /// Reads a row of `AuditReads`. A value of a wrong type must not stop the check, so it reads
    /// values and not columns of a type.
    init(_ row: Row) throws(StoreFailure) {
        var values: [SQLValue] = []
        for index in AuditRow.columns.indices { values.append(try row.value(at: index)) }
        digest = AuditRow.digest(values)
        id = try row.integer("id")
        operation = try row.value("operation").bytes ?? []
        event = try row.value("event").plainText ?? ""
        user = try row.value("user_id").bytes
        writer = try row.value("writer").bytes
        if case .integer(let number) = try row.value("link") { link = number } else { link = nil }
        let salt = try row.value("salt").bytes
        let found = AuditWords(
            note: try row.value("note").plainText, changes: try row.value("changes").plainText,
            reason: try row.value("reason").plainText)
        switch (try row.value("detail").bytes, salt) {
        case (nil, nil): words = .right
        case (.some, nil): words = .missing
        case (let detail, .some(let salt)): words = detail == found.digest(salt: salt) ? .right : .wrong
        }
    }

    func finding(_ kind: AuditFinding.Kind) -> AuditFinding {
        let text =
            switch kind {
            case .inserted: "no link of a writer has this row (\(event))"
            case .detail: words == .missing ? "its words are missing (\(event))" : "its words were changed (\(event))"
            default: "the row was changed (\(event))"
            }
        return AuditFinding(kind, writer: writer, link: link, id: id, operation: operation, text)
    }
}

extension SQLValue {
    fileprivate var bytes: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
    fileprivate var plainText: String? {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .null, .blob, .personal: nil
        }
    }
}
