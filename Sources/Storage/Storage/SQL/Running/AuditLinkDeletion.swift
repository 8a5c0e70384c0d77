import Domain
import Relay
import World

/// The deletion of audit rows whose retention has ended, by whole links from the beginning of a
/// chain.
///
/// Invariant: the checkpoint is written in the same transaction, and before the deletion. It has a
/// MAC, so nobody else can shorten a chain at its beginning without notice.
enum AuditLinkDeletion {
    /// The links that one transaction deletes.
    struct Found: Sendable {
        let writer: [UInt8]
        /// The number of the last link that was deleted before.
        let former: Int64
        let last: AuditLink
        let operations: [[UInt8]]
    }

    /// Finds the oldest links of a chain; nil if none is old enough.
    static func find(_ expired: ExpiredRows, in store: Store) async throws(StoreFailure) -> Found? {
        let before = SQLValue.timestamp(expired.before)
        let start = try await store.run(
            Script("retention", reads: [oldestChain(before: before), newestRow()]))
        guard let chain = start[0].first else { return nil }
        let (writer, former) = (try chain.blob("writer"), try chain.integer("former"))
        // The newest row stays, because the number of the next one is derived from it.
        let newest =
            try start[1].first?.optionalBlob("writer") == writer ? start[1].first?.optionalInteger("link") : nil
        let page = try await store.run(
            Script(
                "retention",
                reads: [
                    links(writer: .blob(writer), former: .integer(former), before: before, newest: .integer(newest))
                ]
            ))[0]
        var last: AuditLink?
        var operations: [[UInt8]] = []
        for row in page {
            // A chain with a hole ends here: `audit verify` must still see the hole.
            guard let link = try AuditLink(row), link.sequence == (last?.sequence ?? former) + 1,
                link.at < expired.before.sql,
                operations.isEmpty || operations.count + link.entries.count <= expired.limit
            else { break }
            last = link
            operations += link.entries.map(\.operation)
        }
        return last.map { Found(writer: writer, former: former, last: $0, operations: operations) }
    }

    static func rows(_ found: Found) -> [SignedRows] { [checkpointOf(writer: .blob(found.writer)).signed] }

    /// Writes the checkpoint and deletes, if the relay holds the lease of the task.
    static func drop(_ found: Found, at now: Timestamp, by relay: RelayID) -> [BoundStatement] {
        let (writer, relay) = (SQLValue.blob(found.writer), SQLValue.id(relay))
        let last = SQLValue.integer(found.last.sequence)
        let groups = stride(from: 0, to: found.operations.count, by: groupSize).map {
            found.operations[$0..<min($0 + groupSize, found.operations.count)].map { SQLValue.blob($0) }
        }
        return [
            insertCheckpoint(writer: writer, hash: .blob(AuditLink.start), now: .timestamp(now), relay: relay),
            moveCheckpoint(
                last: last, hash: .blob(found.last.hash), now: .timestamp(now), writer: writer,
                former: .integer(found.former), relay: relay),
        ]
            + groups.flatMap { group in
                [dropWords, dropRows].map { $0.bound(["writer": writer, "last": last], lists: ["operation": group]) }
            } + [dropLinks(writer: writer, last: last)]
    }

    private static let groupSize = 100

    /// SQLite keeps the order of a CROSS JOIN: it must not begin with the links.
    private static let oldestChain = Statement(
        """
        SELECT w.id AS writer, coalesce(c.sequence, 0) AS former FROM audit_writer w
        LEFT JOIN audit_checkpoint c ON c.writer = w.id
        CROSS JOIN audit_link l ON l.writer = w.id AND l.sequence = coalesce(c.sequence, 0) + 1
        WHERE l.at < :before AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.id = (SELECT max(m.id) FROM audit m)
            AND a.writer = l.writer AND a.link = l.sequence)
        LIMIT 1
        """)

    private static let newestRow = Statement(
        "SELECT writer, link FROM audit WHERE id = (SELECT max(id) FROM audit)")

    private static let links = Statement(
        """
        SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer AND sequence > :former AND at < :before
        AND (:newest IS NULL OR sequence < :newest) ORDER BY sequence LIMIT 100
        """)

    private static let checkpointOf = RowSearch(.auditCheckpoint, where: "writer = :writer")

    private static let isHeld = "EXISTS (SELECT 1 FROM task_lease WHERE name = 'retention' AND holder = :relay)"

    private static let insertCheckpoint = Statement(
        into: .auditCheckpoint, once: true,
        """
        INSERT INTO audit_checkpoint (writer, sequence, hash, at)
        SELECT :writer, 0, :hash, :now /*M! FROM DUAL */ WHERE \(isHeld)
        """)

    private static let moveCheckpoint = Statement(
        """
        UPDATE audit_checkpoint SET sequence = :last, hash = :hash, at = :now
        WHERE writer = :writer AND sequence = :former AND \(isHeld)
        """)

    /// The condition that the checkpoint permits the deletion.
    private static let isPermitted =
        "EXISTS (SELECT 1 FROM audit_checkpoint c WHERE c.writer = :writer AND c.sequence = :last)"

    private static let operations = "(" + (1...groupSize).map { ":operation\($0)" }.joined(separator: ", ") + ")"

    private static let dropWords = Statement(
        "DELETE FROM audit_detail WHERE operation IN \(operations) AND \(isPermitted)")
    private static let dropRows = Statement("DELETE FROM audit WHERE operation IN \(operations) AND \(isPermitted)")
    private static let dropLinks = Statement(
        "DELETE FROM audit_link WHERE writer = :writer AND sequence <= :last AND \(isPermitted)")
}

extension Store {
    /// Deletes old links of one chain. The answer is nil if no link is old enough, and false if
    /// another relay holds the lease.
    func dropLinks(_ expired: ExpiredRows, by relay: RelayID) async throws(StoreFailure) -> DeletionResult?? {
        guard let found = try await AuditLinkDeletion.find(expired, in: self) else { return .none }
        let script = Script(
            "retention", rows: AuditLinkDeletion.rows(found),
            writes: RetentionLease.writes(relay) + AuditLinkDeletion.drop(found, at: expired.before, by: relay),
            reads: [RetentionLease.read(relay)])
        guard try await run(script)[0].first != nil else { return .some(nil) }
        return DeletionResult(count: found.operations.count, mark: expired.mark, isLast: false)
    }
}
