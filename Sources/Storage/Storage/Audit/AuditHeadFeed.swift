import Bytes
import Crypto
import Relay
import Synchronization
import World

/// The heads that a relay writes outside of the store.
///
/// Purpose: what the store says about its own end is not enough, because an attacker can write to the
/// store. So the head of this process comes from its memory, and the heads of other writers are
/// checked before they leave the store. What this process has seen before must still be there.
///
/// Invariant: a head is given once, when it is new. A fault is reported once.
///
/// Failures:
/// - Somebody changes rows of `audit_writer` or `audit_link`. The faults name the writer, and its newest
///   genuine link is its head. A row that cannot be read stops no other one.
/// - Somebody plants a row of `audit` with a high number. New rows then have lower ones, so numbers do
///   not show them. While the newest row is not proven, each round reads all writers.
///
/// `AuditHeadFeedTests.swift` tests it on both engines.
public final class AuditHeadFeed: Sendable {
    /// Something that only somebody else can have written or deleted.
    public struct Fault: Sendable, Hashable {
        /// The table of the row and its key.
        public let row: String
        public let reason: String

        fileprivate init(writer: [UInt8], reason: String) {
            self.init(row: "audit_writer \(Hex.encode(writer))", reason: reason)
        }

        fileprivate init(row: String, reason: String) {
            self.row = row
            self.reason = reason
        }

        /// Whether it is about this writer, whose rows cannot be proven then.
        fileprivate func isOf(_ writer: [UInt8]?) -> Bool {
            writer.map { row == "audit_writer \(Hex.encode($0))" } ?? false
        }
    }

    private struct Known {
        var head: AuditHead
        var isWritten = false
    }

    private struct State {
        var known: [[UInt8]: Known] = [:]
        var reported: Set<Fault> = []
        /// The number of the newest row that was seen and is proven.
        var row: Int64 = 0
        /// The time of the next round that reads all writers; nil: now.
        var next: Instant?
    }

    /// The pause between two rounds that read all writers. The others read those of new rows.
    static let pause = Duration.seconds(600)
    /// Rows whose numbers come late: another node of a cluster may have taken them before.
    private static let late: Int64 = 1_000
    private static let writersAtOnce = 200

    private let store: Store
    private let time: any TimeSource
    private let state = Mutex(State())

    public init(_ store: Store, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Gives the heads that are new to `write`, some at a time, and returns what is wrong in the store.
    /// If `write` returns false, the next round gives them again.
    public func round(_ write: ([AuditHead]) async -> Bool) async throws(StoreFailure) -> [Fault] {
        var faults: [Fault] = []
        let own = store.auditHead
        if let own {
            _ = note(own)
            guard await give([own.writer], write) else { return [] }
        }
        guard let authenticator = store.rowAuthenticator else { return [] }
        let now = time.instant()
        let newest = try await newestRow(authenticator)
        let isWhole = state.withLock { $0.next.map { now >= $0 } ?? true } || newest?.isProven == false
        let isDone =
            isWhole
            ? try await readAll(authenticator, &faults, write)
            : try await readRecent(own?.writer, authenticator, &faults, write)
        if let newest, !newest.isProven, !faults.contains(where: { $0.isOf(newest.writer) }) {
            faults.append(Fault(row: "audit \(newest.id)", reason: "no writer has signed the newest row"))
        }
        state.withLock { state in
            if isDone, newest?.isProven != false { state.row = newest?.id ?? 0 }
            if !isDone { state.next = nil } else if isWhole { state.next = now + Self.pause }
        }
        return faults.filter { fault in state.withLock { $0.reported.insert(fault).inserted } }
    }

    /// Gives all heads again in the next round, because a new file has begun.
    public func beginAgain() {
        state.withLock { state in
            for writer in state.known.keys { state.known[writer]?.isWritten = false }
            state.next = nil
        }
    }

    private func readAll(
        _ authenticator: RowAuthenticator, _ faults: inout [Fault], _ write: ([AuditHead]) async -> Bool
    ) async throws(StoreFailure) -> Bool {
        var seen: Set<[UInt8]> = []
        var after: [UInt8] = []
        while true {
            let page = try await store.run(AuditHeadCandidate.page(after: after))
            for candidate in page {
                seen.insert(candidate.writer)
                try await judge(candidate, authenticator, &faults)
            }
            guard await give(page.map(\.writer), write) else { return false }
            guard page.count == AuditHeadCandidate.pageSize, let last = page.last else { break }
            after = last.writer
        }
        let missing = state.withLock { $0.known.keys.filter { !seen.contains($0) } }
        for writer in missing { try await judgeMissing(writer, authenticator, &faults) }
        return true
    }

    private func readRecent(
        _ own: [UInt8]?, _ authenticator: RowAuthenticator, _ faults: inout [Fault],
        _ write: ([AuditHead]) async -> Bool
    ) async throws(StoreFailure) -> Bool {
        let recent = try await store.run(
            AuditHeadCandidate.writers(after: max(state.withLock { $0.row }, .min + Self.late) - Self.late))
        let writers = Array(Set(recent + [own].compactMap(\.self)))
        for start in stride(from: 0, to: writers.count, by: Self.writersAtOnce) {
            let some = Array(writers[start..<min(start + Self.writersAtOnce, writers.count)])
            let found = try await store.run(AuditHeadCandidate.of(some))
            for candidate in found { try await judge(candidate, authenticator, &faults) }
            for writer in Set(some).subtracting(found.map(\.writer)) {
                try await judgeMissing(writer, authenticator, &faults)
            }
            guard await give(some, write) else { return false }
        }
        return true
    }

    /// Reads the newest row; nil if there is none.
    private func newestRow(_ authenticator: RowAuthenticator) async throws(StoreFailure) -> NewestAuditRow? {
        var last: NewestAuditRow?
        while let row = try await NewestAuditRow.read(store, authenticator) {
            // Retention may have deleted the link, because a newer row was written meanwhile.
            if row.isProven || row.id == last?.id { return row }
            last = row
        }
        return nil
    }

    // MARK: Judging

    /// Notes the newest genuine head of a writer.
    private func judge(
        _ candidate: AuditHeadCandidate, _ authenticator: RowAuthenticator, _ faults: inout [Fault]
    ) async throws(StoreFailure) {
        func report(_ reason: String) { faults.append(Fault(writer: candidate.writer, reason: reason)) }
        guard let key = candidate.key(authenticator) else {
            return report("no program has signed the row of this writer")
        }
        guard candidate.hasLink else { return try await judgeMissing(candidate.writer, authenticator, &faults) }
        var head = candidate.head
        if head?.isGenuine(key) != true {
            report("its newest link is not genuine")
            head = try await genuine(below: candidate, key)
        }
        guard let head else { return }
        if let reason = note(head) { report(reason) }
    }

    /// Finds the newest genuine link below one that is not.
    private func genuine(
        below candidate: AuditHeadCandidate, _ key: P256PublicKey
    ) async throws(StoreFailure) -> AuditHead? {
        var end = candidate.sequence ?? .max
        for _ in 0..<10 {
            let page = try await store.run(
                AuditHeadCandidate.links(of: candidate.writer, upTo: end, key: key))
            if let head = page.heads.first(where: { $0.isGenuine(key) }) { return head }
            guard let last = page.last, last > .min else { return nil }
            end = last - 1
        }
        return try await halved(candidate.writer, key, below: end)
    }

    /// Finds the newest genuine link below many that somebody has planted. The genuine ones come before
    /// them, so each step can leave out half of the numbers.
    private func halved(
        _ writer: [UInt8], _ key: P256PublicKey, below end: Int64
    ) async throws(StoreFailure) -> AuditHead? {
        var (low, high) = (state.withLock { $0.known[writer]?.head.sequence } ?? 0, end)
        var newest: AuditHead?
        while low < high {
            let middle = high - (high - low) / 2
            let page = try await store.run(AuditHeadCandidate.links(of: writer, upTo: middle, key: key))
            if let head = page.heads.first, head.isGenuine(key) {
                newest = head
                low = middle
            } else {
                high = middle - 1
            }
        }
        return newest
    }

    /// Notes a head, and returns what is wrong with it.
    private func note(_ head: AuditHead) -> String? {
        state.withLock { state in
            guard let known = state.known[head.writer] else {
                state.known[head.writer] = Known(head: head)
                return nil
            }
            if head.sequence > known.head.sequence {
                state.known[head.writer] = Known(head: head)
                return nil
            }
            guard head.sequence == known.head.sequence else {
                return "its chain ended with link \(known.head.sequence), and now with \(head.sequence)"
            }
            guard head.hash == known.head.hash else {
                return "it has another link \(head.sequence) than before"
            }
            return nil
        }
    }

    /// Reports a writer that was there before, unless retention has deleted its chain.
    private func judgeMissing(
        _ writer: [UInt8], _ authenticator: RowAuthenticator, _ faults: inout [Fault]
    ) async throws(StoreFailure) {
        guard let former = state.withLock({ $0.known[writer]?.head }) else { return }
        if try await isDeleted(former, authenticator) {
            state.withLock { _ = $0.known.removeValue(forKey: writer) }
        } else {
            faults.append(Fault(writer: writer, reason: "its chain is missing, which had \(former.sequence) links"))
        }
    }

    /// Whether retention has deleted the link with the former head.
    private func isDeleted(
        _ former: AuditHead, _ authenticator: RowAuthenticator
    ) async throws(StoreFailure) -> Bool {
        let tables = try await store.run(
            Script(
                "audit heads",
                reads: [former.writer, AuditCheckpoint.retired].map { AuditReads.checkpoint(writer: .blob($0)) }))
        for rows in tables {
            guard let row = try rows.checkedRows(.auditCheckpoint).first, row.isGenuine(authenticator),
                let checkpoint = AuditCheckpoint(row), former.at < checkpoint.cutOff
            else { continue }
            if checkpoint.writer == AuditCheckpoint.retired || former.sequence <= checkpoint.sequence { return true }
        }
        return false
    }

    // MARK: Giving

    private func give(
        _ writers: [[UInt8]], _ write: ([AuditHead]) async -> Bool
    ) async -> Bool {
        let heads = state.withLock { state in
            writers.compactMap { state.known[$0] }.filter { !$0.isWritten }.map(\.head)
        }
        guard !heads.isEmpty else { return true }
        guard await write(heads) else {
            state.withLock { $0.next = nil }
            return false
        }
        state.withLock { state in
            for head in heads where state.known[head.writer]?.head == head {
                state.known[head.writer]?.isWritten = true
            }
        }
        return true
    }
}

extension Store {
    /// The head of the chain that this process writes, from its memory.
    var auditHead: AuditHead? { auditChain?.head }
}
