import Crypto
import Relay

/// The check of the whole audit: of the chains, of the rows, and of the heads outside of the store.
///
/// Purpose: it names each row and each link that is not as its writer wrote it
/// (docs/operators/audit.md has the list).
///
/// Invariant: what relays write or delete while it runs is not reported. It reads the number of the
/// last row first, then the links, then the rows up to that number. What does not fit is looked up
/// once more at the end.
///
/// Failures: it needs about 100 bytes of memory for each row. Without heads, it cannot see that the
/// end of a chain is missing.
///
/// `AuditVerificationTests.swift` tests it on both engines.
public struct AuditVerification {
    public private(set) var findings: [AuditFinding] = []
    public private(set) var rows = 0
    public private(set) var links = 0
    /// The number of writers.
    public var writers: Int { chains.count }
    /// The number of rows whose words were deleted with their user.
    public private(set) var deletedDetails = 0

    private let store: Store
    private let authenticator: RowAuthenticator
    private var chains: [[UInt8]: AuditChainCheck] = [:]
    private var expected: [AuditKey: ExpectedRow] = [:]
    private var unlinked: [CheckedAuditRow] = []
    private var withoutWords: [CheckedAuditRow] = []
    private var forgotten: Set<[UInt8]> = []

    /// Checks the audit of a store.
    ///
    /// - Parameters:
    ///   - heads: the heads that were written outside of the store.
    ///   - progress: is called after each page with the number of rows that were read so far.
    public static func run(
        _ store: Store, heads: [AuditHead] = [], progress: (Int) -> Void = { _ in }
    ) throws(StoreFailure) -> AuditVerification {
        guard let authenticator = store.rowAuthenticator else {
            throw .internal("checking the audit needs the master key")
        }
        var check = AuditVerification(store: store, authenticator: authenticator)
        try check.readWriters(heads)
        let last = try store.runBlocking(Script("audit", reads: [AuditReads.lastRow()]))[0].first?
            .optionalInteger("last")
        try check.readLinks()
        try check.readRows(upTo: last ?? 0, progress)
        try check.lookAgain()
        check.compareHeads(heads)
        return check
    }

    private init(store: Store, authenticator: RowAuthenticator) {
        self.store = store
        self.authenticator = authenticator
    }

    private mutating func readWriters(_ heads: [AuditHead]) throws(StoreFailure) {
        let tables = try store.runBlocking(
            Script("audit", reads: [AuditReads.writers(), AuditReads.checkpoints()]))
        for row in try tables[0].checkedRows(.auditWriter) {
            guard case .blob(let id) = row.values[0], case .blob(let key) = row.values[4] else { continue }
            let isGenuine = row.isGenuine(authenticator)
            if !isGenuine { findings.append(AuditFinding(.writer, writer: id, "no program has signed this writer")) }
            chains[id] = AuditChainCheck(key: isGenuine ? try? P256PublicKey(x963: key) : nil)
        }
        for row in try tables[1].checkedRows(.auditCheckpoint) {
            guard case .blob(let id) = row.values[0], case .integer(let sequence) = row.values[1],
                case .blob(let hash) = row.values[2]
            else { continue }
            guard row.isGenuine(authenticator) else {
                findings.append(
                    AuditFinding(.writer, writer: id, link: sequence, "no relay has signed this checkpoint"))
                continue
            }
            chains[id]?.begin(after: sequence, hash)
        }
        for head in heads { chains[head.writer]?.note(head) }
    }

    // MARK: Links

    private mutating func readLinks() throws(StoreFailure) {
        var writer: [UInt8] = []
        while let next = try store.runBlocking(
            Script("audit", reads: [AuditReads.nextChain(writer: .blob(writer))]))[0].first?.optionalBlob("writer")
        {
            writer = next
            if chains[writer] == nil {
                findings.append(AuditFinding(.writer, writer: writer, "the row of this writer is missing"))
                chains[writer] = AuditChainCheck(key: nil)
            }
            var last: Int64 = .min
            while true {
                let read = AuditReads.links(writer: .blob(writer), sequence: .integer(last))
                let page = try store.runBlocking(Script("audit", reads: [read]))[0]
                for row in page {
                    last = try row.integer("sequence")
                    try add(row, sequence: last, of: writer)
                }
                if page.isEmpty { break }
            }
        }
    }

    private mutating func add(_ row: Row, sequence: Int64, of writer: [UInt8]) throws(StoreFailure) {
        links += 1
        guard let link = try AuditLink(row) else {
            chains[writer]?.skip(sequence)
            findings.append(AuditFinding(.link, writer: writer, link: sequence, "the entries cannot be read"))
            return
        }
        if let fault = chains[writer]?.append(link) {
            findings.append(AuditFinding(.link, writer: writer, link: fault.link, fault.text))
        }
        for entry in link.entries {
            guard let key = AuditKey(entry.operation) else { continue }
            let row = ExpectedRow(digest: AuditDigest(entry.digest), writer: writer, link: sequence)
            if expected.updateValue(row, forKey: key) != nil {
                findings.append(
                    AuditFinding(
                        .link, writer: writer, link: sequence, operation: entry.operation,
                        "another link has this row, too"))
            }
        }
    }

    // MARK: Rows

    private mutating func readRows(upTo last: Int64, _ progress: (Int) -> Void) throws(StoreFailure) {
        var id: Int64 = .min
        while true {
            let read = AuditReads.rows(id: .integer(id), last: .integer(last))
            let page = try store.runBlocking(Script("audit", reads: [read]))[0]
            for row in page {
                let row = try CheckedAuditRow(row)
                id = row.id
                rows += 1
                check(row)
            }
            progress(rows)
            if page.isEmpty { break }
        }
    }

    private mutating func check(_ row: CheckedAuditRow) {
        guard let key = AuditKey(row.operation), let wanted = expected.removeValue(forKey: key) else {
            return unlinked.append(row)
        }
        guard wanted.digest == AuditDigest(row.digest) else { return findings.append(row.finding(.changed)) }
        if row.event == "user.forgotten", let user = row.user { forgotten.insert(user) }
        switch row.words {
        case .right: break
        case .wrong: findings.append(row.finding(.detail))
        case .missing: withoutWords.append(row)
        }
    }

    // MARK: The end

    /// Looks up once more what does not fit: relays may have written or deleted it meanwhile.
    private mutating func lookAgain() throws(StoreFailure) {
        for row in unlinked {
            let isNew = try isOfANewLink(row)
            if !isNew { findings.append(row.finding(.inserted)) }
        }
        for row in withoutWords {
            guard let user = row.user, forgotten.contains(user) else {
                findings.append(row.finding(.detail))
                continue
            }
            deletedDetails += 1
        }
        guard !expected.isEmpty else { return }
        let checkpoints = try checkpointsNow()
        let missing = expected.sorted { ($0.value.link, $0.key) < ($1.value.link, $1.key) }
        for (key, wanted) in missing {
            if let deleted = checkpoints[wanted.writer], wanted.link <= deleted { continue }
            let found = try store.runBlocking(
                Script("audit", reads: [AuditReads.row(operation: .blob(key.bytes))]))[0].first
            guard let found else {
                findings.append(
                    AuditFinding(
                        .removed, writer: wanted.writer, link: wanted.link, operation: key.bytes, "the row is missing"))
                continue
            }
            let row = try CheckedAuditRow(found)
            if AuditDigest(row.digest) != wanted.digest { findings.append(row.finding(.changed)) }
        }
    }

    /// Whether the row belongs to a link that was written after the links were read.
    private mutating func isOfANewLink(_ row: CheckedAuditRow) throws(StoreFailure) -> Bool {
        guard let writer = row.writer, let sequence = row.link else { return false }
        if chains[writer] == nil { try readWriters([]) }
        guard let chain = chains[writer], let key = chain.key, sequence > chain.last else { return false }
        let read = AuditReads.link(writer: .blob(writer), sequence: .integer(sequence))
        guard let found = try store.runBlocking(Script("audit", reads: [read]))[0].first,
            let link = try AuditLink(found), link.isGenuine(key)
        else { return false }
        return link.entries.contains(AuditLink.Entry(operation: row.operation, digest: row.digest))
    }

    private func checkpointsNow() throws(StoreFailure) -> [[UInt8]: Int64] {
        let rows = try store.runBlocking(Script("audit", reads: [AuditReads.checkpoints()]))[0]
        var now: [[UInt8]: Int64] = [:]
        for row in try rows.checkedRows(.auditCheckpoint) where row.isGenuine(authenticator) {
            guard case .blob(let id) = row.values[0], case .integer(let sequence) = row.values[1] else { continue }
            now[id] = sequence
        }
        return now
    }

    private mutating func compareHeads(_ heads: [AuditHead]) {
        var newest: [[UInt8]: AuditHead] = [:]
        for head in heads where head.sequence > newest[head.writer]?.sequence ?? 0 { newest[head.writer] = head }
        for head in newest.values.sorted(by: { $0.writer.lexicographicallyPrecedes($1.writer) }) {
            let key = chains[head.writer]?.key ?? head.ownKey
            guard let key, head.isGenuine(key) else {
                findings.append(
                    AuditFinding(.head, writer: head.writer, link: head.sequence, "its writer has not signed this head")
                )
                continue
            }
            if let fault = chains[head.writer].map({ $0.fault(for: head) }) ?? "the whole chain is missing" {
                findings.append(AuditFinding(.truncated, writer: head.writer, link: head.sequence, fault))
            }
        }
    }
}
