import Crypto
import Relay

/// The check of one chain, link by link.
///
/// Invariant: `last` is the number of the last link that the chain has without a gap, or that
/// retention has deleted. A link that its writer has not signed takes the place of the next one, but
/// proves nothing.
struct AuditChainCheck {
    /// The key in the writer's row; nil if the row is missing or has no key.
    let key: P256PublicKey?
    /// Whether a program has signed the writer's row. Only then, its links prove rows.
    let isProven: Bool
    /// The number of the last link that was read or deleted by retention.
    private(set) var last: Int64 = 0
    /// The number of the last row of `audit_link` that was read; nil before the first one.
    var cursor: Int64?
    /// Whether there was no further link when the last ones were read.
    var isAtEnd = false
    /// The head outside of the store with which the chain is compared.
    private(set) var head: AuditHead?
    /// The hash of the last link; nil if it is not known.
    private var hash: [UInt8]? = AuditLink.start
    private var deleted: Int64 = 0
    private var cutOff = ""
    private var isHeadSeen = false

    init(key: P256PublicKey?, isProven: Bool) {
        self.key = key
        self.isProven = isProven
    }

    /// Begins after the links that retention has deleted.
    mutating func begin(after checkpoint: AuditCheckpoint) {
        guard checkpoint.sequence > last else { return }
        (last, hash) = (checkpoint.sequence, checkpoint.hash)
        (deleted, cutOff) = (checkpoint.sequence, checkpoint.cutOff)
    }

    /// Goes on past links before `sequence` that retention has deleted since the check began.
    mutating func skipDeleted(_ checkpoint: AuditCheckpoint, before sequence: Int64) {
        guard checkpoint.sequence > last else { return }
        (deleted, cutOff) = (checkpoint.sequence, checkpoint.cutOff)
        if checkpoint.sequence < sequence {
            (last, hash) = (checkpoint.sequence, checkpoint.hash)
        } else {
            (last, hash) = (sequence - 1, nil)
        }
    }

    /// Notes the head with which the chain is compared.
    mutating func note(_ head: AuditHead) { self.head = head }

    /// The number of links that the chain has beyond its head.
    var linksBeyondHead: Int64 { max(0, last - max(head?.sequence ?? 0, deleted)) }

    /// Whether links are missing before this one.
    func hasGap(before sequence: Int64) -> Bool { sequence > last && sequence - 1 > last }

    /// Goes on to a link, and returns what is wrong with it.
    mutating func append(_ link: AuditLink, isGenuine: Bool) -> (link: Int64, text: String)? {
        guard isGenuine else {
            if key == nil { see(link) }
            skip(link.sequence)
            return key == nil ? nil : (link.sequence, "its writer has not signed this link")
        }
        guard link.sequence > last else {
            return (link.sequence, "retention has deleted this link, and it is here again")
        }
        let (missing, former) = (last + 1, hash)
        (last, hash) = (link.sequence, link.hash)
        see(link)
        if link.sequence > missing {
            return (missing, "the links \(missing) to \(link.sequence - 1) are missing")
        }
        guard former == nil || former == link.former else {
            return (link.sequence, "the link before it is another one")
        }
        return nil
    }

    private mutating func see(_ link: AuditLink) {
        if let head, head.sequence == link.sequence, head.hash == link.hash { isHeadSeen = true }
    }

    /// Goes on past a link that cannot be read, or that its writer has not signed.
    mutating func skip(_ sequence: Int64) {
        guard sequence > last, sequence - 1 == last || key == nil else { return }
        (last, hash) = (sequence, nil)
    }

    /// Returns what the chain lacks of its head; nil if it has the head, or had it before retention.
    var headFault: String? {
        guard let head, !isHeadSeen else { return nil }
        if head.sequence <= deleted {
            return head.at < cutOff ? nil : "retention has deleted this link before its time"
        }
        guard last < head.sequence else { return "the chain has another link under this number" }
        return "the links \(last + 1) to \(head.sequence) are missing"
    }
}

/// A checkpoint that a relay has signed: retention has deleted the links up to `sequence`.
struct AuditCheckpoint: Sendable, Equatable {
    /// The writer of the checkpoint of chains that were deleted as a whole, with the rows of their
    /// writers. Its number counts them.
    static let retired = [UInt8](repeating: 0, count: 16)

    let writer: [UInt8]
    let sequence: Int64
    let hash: [UInt8]
    /// Only links before this time were deleted.
    let cutOff: String

    /// Reads a row; nil if a value has another type.
    init?(_ row: CheckedRow) {
        guard case .blob(let writer) = row.values[0], case .integer(let sequence) = row.values[1],
            case .blob(let hash) = row.values[2], case .text(let cutOff) = row.values[3]
        else { return nil }
        self.writer = writer
        self.sequence = sequence
        self.hash = hash
        self.cutOff = cutOff
    }
}
