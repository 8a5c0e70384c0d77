import Crypto
import Relay

/// Reads the heads that were written outside of the store, and calls `body` with each of them. It is
/// called a second time if a head is not genuine.
public typealias AuditHeadReader = (_ body: (AuditHead) -> Void) throws(StoreFailure) -> Void

/// The result of the heads outside of the store.
public struct AuditHeadSummary: Sendable, Equatable {
    /// The number of heads that were read.
    public let count: Int
    /// The number of chains of the store that have a head.
    public internal(set) var chains = 0
    /// The time of the newest genuine head, in the form of the store; nil if none is genuine.
    public internal(set) var newest: String?
    /// The number of links that the store has beyond the heads. Nothing shows whether further ones were
    /// there.
    public internal(set) var linksBeyond: Int64 = 0

    /// Whether the heads say anything about this store.
    public var isOfThisStore: Bool { chains > 0 }
}

/// The newest head of each writer, from any number of heads.
struct AuditHeadSelection {
    private(set) var count = 0
    private(set) var newest: [[UInt8]: AuditHead] = [:]

    init(_ read: AuditHeadReader) throws(StoreFailure) {
        var count = 0
        var newest: [[UInt8]: AuditHead] = [:]
        try read { head in
            count += 1
            if head.sequence > newest[head.writer]?.sequence ?? 0 { newest[head.writer] = head }
        }
        (self.count, self.newest) = (count, newest)
    }

    /// Replaces the heads of these writers by their newest genuine ones. Each head of them is checked.
    mutating func replace(
        _ writers: Set<[UInt8]>, _ read: AuditHeadReader, keys: [[UInt8]: P256PublicKey]
    ) throws(StoreFailure) {
        var newest = newest.filter { !writers.contains($0.key) }
        try read { head in
            guard writers.contains(head.writer), head.sequence > newest[head.writer]?.sequence ?? 0,
                Self.isGenuine(head, keys)
            else { return }
            newest[head.writer] = head
        }
        self.newest = newest
    }

    /// Whether the writer has signed the head. A writer that the store does not have is taken at its
    /// word.
    static func isGenuine(_ head: AuditHead, _ keys: [[UInt8]: P256PublicKey]) -> Bool {
        guard let key = keys[head.writer] ?? head.ownKey else { return false }
        return head.isGenuine(key)
    }
}

extension AuditVerification {
    /// Notes the newest genuine head of each chain, and reports those that are not genuine. Somebody
    /// who adds a false head must not hide the genuine ones below it.
    mutating func noteHeads(_ read: AuditHeadReader?) throws(StoreFailure) {
        guard var heads = selection, let read else { return }
        for writer in heads.newest.keys { _ = try hasChain(writer) }
        let keys = chains.compactMapValues(\.key)
        var suspects: Set<[UInt8]> = []
        for head in Self.sorted(heads) where !AuditHeadSelection.isGenuine(head, keys) {
            suspects.insert(head.writer)
            findings.append(
                AuditFinding(.head, writer: head.writer, link: head.sequence, "its writer has not signed this head"))
        }
        if !suspects.isEmpty { try heads.replace(suspects, read, keys: keys) }
        selection = heads
        for head in heads.newest.values { chains[head.writer]?.note(head) }
    }

    /// Reports the chains that lack what their heads name.
    mutating func compareHeads() throws(StoreFailure) {
        guard let selection else { return }
        var summary = AuditHeadSummary(count: selection.count)
        for head in Self.sorted(selection) {
            summary.newest = max(summary.newest ?? "", head.at)
            if chains[head.writer] != nil { summary.chains += 1 }
            guard try fault(of: head) != nil else { continue }
            // Retention may have deleted it since the chains were read.
            let checkpoint = try checkpoint(of: head.writer)
            if let checkpoint { chains[head.writer]?.skipDeleted(checkpoint, before: .max) }
            guard let fault = try fault(of: head) else { continue }
            findings.append(AuditFinding(.truncated, writer: head.writer, link: head.sequence, fault))
        }
        for chain in chains.values { summary.linksBeyond += chain.linksBeyondHead }
        heads = summary
    }

    private func fault(of head: AuditHead) throws(StoreFailure) -> String? {
        if let chain = chains[head.writer] { return chain.headFault }
        // Retention deletes writers whose whole chain it has deleted.
        if let retired = try checkpoint(of: AuditCheckpoint.retired), head.at < retired.cutOff { return nil }
        return "the whole chain is missing"
    }

    private static func sorted(_ heads: AuditHeadSelection) -> [AuditHead] {
        heads.newest.values.sorted { $0.writer.lexicographicallyPrecedes($1.writer) }
    }
}
