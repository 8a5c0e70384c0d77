import Crypto
import Relay
import World

/// The check of the whole audit: of the chains, of the rows, and of the heads outside of the store.
///
/// Purpose: it names each row and each link that is not as its writer wrote it
/// (docs/operators/audit.md has the list).
///
/// Invariant: what programs write or delete while it runs is not reported. It reads the rows by
/// number, and each chain as far as the rows name it. What does not fit then is looked up once more:
/// a new writer, a checkpoint that moved, a user who was deleted, a row that came late.
///
/// Failures: the memory grows with the number of writers, and with the rows that do not fit. Without
/// heads, it cannot see that the end of a chain is missing.
///
/// `AuditVerificationTests.swift` and `AuditBesideTests.swift` test it on both engines.
public struct AuditVerification {
    public internal(set) var findings: [AuditFinding] = []
    public private(set) var rows = 0
    public private(set) var links = 0
    /// The number of writers.
    public var writers: Int { chains.count }
    /// The number of rows whose words were deleted with their user.
    public internal(set) var deletedDetails = 0
    /// The result of the heads outside of the store; nil without heads.
    public internal(set) var heads: AuditHeadSummary?

    let store: Store
    let authenticator: RowAuthenticator
    let now: Timestamp
    var chains: [[UInt8]: AuditChainCheck] = [:]
    /// The rows of genuine links that were not read yet.
    var expected: [AuditKey: ExpectedRow] = [:]
    /// The rows whose links were not read yet.
    var pending: [AuditKey: CheckedAuditRow] = [:]
    /// The ids of writers that do not exist.
    private var unknownWriters: Set<[UInt8]> = []
    /// The newest genuine head of each writer; nil without heads.
    var selection: AuditHeadSelection?
    /// The numbers of the genuine rows that say that a user was deleted.
    var forgotten: [[UInt8]: Int64] = [:]

    /// Checks the audit of a store.
    ///
    /// - Parameters:
    ///   - heads: reads the heads that were written outside of the store; nil if there are none.
    ///   - progress: is called after each page with the number of rows that were read so far.
    public static func run(
        _ store: Store, heads: AuditHeadReader? = nil, at now: Timestamp, progress: (Int) -> Void = { _ in }
    ) throws(StoreFailure) -> AuditVerification {
        guard let authenticator = store.rowAuthenticator else {
            throw .internal("checking the audit needs the master key")
        }
        var check = AuditVerification(store: store, authenticator: authenticator, now: now)
        // The heads come first: the store has at least what they name.
        if let heads { check.selection = try AuditHeadSelection(heads) }
        try check.readWriters()
        try check.noteHeads(heads)
        let last = try check.readRows(after: nil, progress)
        try check.readOtherLinks()
        _ = try check.readRows(after: last, progress)
        try check.lookAgain()
        try check.compareHeads()
        check.reportWriters()
        try check.reportStrays()
        return check
    }

    private init(store: Store, authenticator: RowAuthenticator, now: Timestamp) {
        self.store = store
        self.authenticator = authenticator
        self.now = now
    }

    func read(_ statement: BoundStatement) throws(StoreFailure) -> Rows {
        try store.runBlocking(Script("audit", reads: [statement]))[0]
    }

    // MARK: Writers

    private mutating func readWriters() throws(StoreFailure) {
        var last: [UInt8] = []
        while true {
            let page = try read(AuditReads.writers(writer: .blob(last))).checkedRows(.auditWriter)
            for row in page {
                if case .blob(let id) = row.values[0] { last = id }
                add(row)
            }
            guard page.count == AuditReads.pageSize else { break }
        }
        last = []
        while true {
            let page = try read(AuditReads.checkpoints(writer: .blob(last))).checkedRows(.auditCheckpoint)
            for row in page {
                if case .blob(let id) = row.values[0] { last = id }
                begin(at: row)
            }
            guard page.count == AuditReads.pageSize else { break }
        }
    }

    private mutating func add(_ row: CheckedRow) {
        guard case .blob(let id) = row.values[0], chains[id] == nil else { return }
        let key = row.writerKey
        begin(id, AuditChainCheck(key: key, isProven: key != nil && row.isGenuine(authenticator)))
    }

    private mutating func begin(_ writer: [UInt8], _ chain: AuditChainCheck) {
        chains[writer] = chain
        if let head = selection?.newest[writer] { chains[writer]?.note(head) }
    }

    private mutating func begin(at row: CheckedRow) {
        guard row.isGenuine(authenticator), let checkpoint = AuditCheckpoint(row) else {
            guard case .blob(let id) = row.values[0], case .integer(let sequence) = row.values[1] else { return }
            return findings.append(
                AuditFinding(.writer, writer: id, link: sequence, "no relay has signed this checkpoint"))
        }
        // No retention is shorter than a week, so the clock of that relay was wrong.
        if checkpoint.cutOff > (now - Self.shortestRetention).sql {
            findings.append(
                AuditFinding(
                    .writer, writer: checkpoint.writer, link: checkpoint.sequence,
                    "a relay whose clock was wrong has deleted links before \(checkpoint.cutOff)"))
        }
        chains[checkpoint.writer]?.begin(after: checkpoint)
    }

    /// An hour less than the shortest retention of the settings, because clocks differ.
    private static let shortestRetention = Duration.seconds(7 * 86_400 - 3_600)

    /// Whether the writer exists. A program may have begun since the writers were read.
    mutating func hasChain(_ writer: [UInt8]) throws(StoreFailure) -> Bool {
        if chains[writer] != nil { return true }
        guard !unknownWriters.contains(writer) else { return false }
        guard let row = try read(AuditReads.writer(writer: .blob(writer))).checkedRows(.auditWriter).first else {
            unknownWriters.insert(writer)
            return false
        }
        add(row)
        if let row = try read(AuditReads.checkpoint(writer: .blob(writer))).checkedRows(.auditCheckpoint).first {
            begin(at: row)
        }
        return chains[writer] != nil
    }

    /// Reads a checkpoint again: retention may have moved it.
    func checkpoint(of writer: [UInt8]) throws(StoreFailure) -> AuditCheckpoint? {
        let row = try read(AuditReads.checkpoint(writer: .blob(writer))).checkedRows(.auditCheckpoint).first
        guard let row, row.isGenuine(authenticator) else { return nil }
        return AuditCheckpoint(row)
    }

    /// Reports the writers that no program has signed. Their links and rows prove nothing, and are not
    /// reported one by one.
    private mutating func reportWriters() {
        let unproven = chains.filter { !$0.value.isProven }.keys
        for writer in unproven.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            let isMissing = unknownWriters.contains(writer)
            findings.append(
                AuditFinding(
                    .writer, writer: writer,
                    isMissing ? "the row of this writer is missing" : "no program has signed this writer"))
        }
    }

    // MARK: Links

    /// Reads the links of a chain until it has the number that a row names, or all if that is nil.
    private mutating func advance(_ writer: [UInt8], to number: Int64?) throws(StoreFailure) {
        guard try hasChain(writer) else { return }
        while let chain = chains[writer], !chain.isAtEnd, isBefore(chain.cursor, number) {
            try readLinks(of: writer, after: chain.cursor)
        }
    }

    private func isBefore(_ cursor: Int64?, _ number: Int64?) -> Bool {
        guard let cursor, let number else { return true }
        return cursor < number
    }

    private mutating func readLinks(of writer: [UInt8], after cursor: Int64?) throws(StoreFailure) {
        let page = try read(
            cursor.map { AuditReads.links(writer: .blob(writer), sequence: .integer($0)) }
                ?? AuditReads.firstLinks(writer: .blob(writer)))
        if page.count < AuditReads.linksOfPage { chains[writer]?.isAtEnd = true }
        for row in page {
            links += 1
            let sequence = try row.integer("sequence")
            chains[writer]?.cursor = sequence
            guard let link = try AuditLink(row) else {
                chains[writer]?.skip(sequence)
                findings.append(AuditFinding(.link, writer: writer, link: sequence, "the link cannot be read"))
                continue
            }
            try add(link)
        }
    }

    private mutating func add(_ link: AuditLink) throws(StoreFailure) {
        guard let chain = chains[link.writer] else { return }
        let isGenuine = chain.key.map { link.isGenuine($0) } ?? false
        if isGenuine, chain.hasGap(before: link.sequence), let checkpoint = try checkpoint(of: link.writer) {
            chains[link.writer]?.skipDeleted(checkpoint, before: link.sequence)
        }
        if let fault = chains[link.writer]?.append(link, isGenuine: isGenuine) {
            findings.append(AuditFinding(.link, writer: link.writer, link: fault.link, fault.text))
        }
        // Other links prove no rows, and must not hide what genuine ones say about them.
        guard isGenuine, chain.isProven else { return }
        for entry in link.entries {
            guard let key = AuditKey(entry.operation) else { continue }
            let wanted = ExpectedRow(digest: AuditDigest(entry.digest), writer: link.writer, link: link.sequence)
            if let row = pending.removeValue(forKey: key) {
                try compare(row, wanted)
            } else if expected[key] != nil {
                findings.append(
                    AuditFinding(
                        .link, writer: link.writer, link: link.sequence, operation: entry.operation,
                        "another link has this row, too"))
            } else {
                expected[key] = wanted
            }
        }
    }

    /// Reads the links that no row has named.
    private mutating func readOtherLinks() throws(StoreFailure) {
        var last: [UInt8] = []
        while true {
            let page = try read(AuditReads.ends(writer: .blob(last)))
            for row in page {
                guard case .blob(let writer) = try row.value("writer") else { continue }
                last = writer
                let isKnown = try hasChain(writer)
                if !isKnown { begin(writer, AuditChainCheck(key: nil, isProven: false)) }
                // A planted link without a number must not hide the links before it.
                guard case .integer(let end) = try row.value("last") else {
                    try advance(writer, to: nil)
                    continue
                }
                if isBefore(chains[writer]?.cursor, end) { chains[writer]?.isAtEnd = false }
                try advance(writer, to: end)
            }
            guard page.count == AuditReads.pageSize else { return }
        }
    }

    // MARK: Rows

    /// Reads the rows up to the one that is the last one now, and returns its number.
    private mutating func readRows(after start: Int64?, _ progress: (Int) -> Void) throws(StoreFailure) -> Int64? {
        guard let last = try read(AuditReads.lastRow()).first?.optionalInteger("last") else { return start }
        var id = start
        while true {
            let page = try read(
                id.map { AuditReads.rows(id: .integer($0), last: .integer(last)) }
                    ?? AuditReads.firstRows(last: .integer(last)))
            for row in page {
                let row = try CheckedAuditRow(row)
                id = row.id
                rows += 1
                try check(row)
            }
            progress(rows)
            if page.count < AuditReads.pageSize { return last }
        }
    }

    private mutating func check(_ row: CheckedAuditRow) throws(StoreFailure) {
        guard let key = AuditKey(row.operation) else { return findings.append(row.finding(.inserted)) }
        if let writer = row.writer, let link = row.link { try advance(writer, to: link) }
        if let wanted = expected.removeValue(forKey: key) {
            try compare(row, wanted)
        } else {
            pending[key] = row
        }
    }
}
