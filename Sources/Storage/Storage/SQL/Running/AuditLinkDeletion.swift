import Bytes
import Crypto
import Domain
import Relay
import World

/// The deletion of audit rows whose retention has ended, by whole links from the beginning of a
/// chain.
///
/// Invariants: the checkpoint is written in the same transaction, and before the deletion. It has a
/// MAC, so nobody else can shorten a chain at its beginning without notice. Only links that their
/// writer has signed are deleted, without a gap: otherwise somebody could set the times of links back,
/// and the relay itself would sign the checkpoint that hides them.
///
/// Failures: the beginning of a chain is not as its writer wrote it. Then the chain stays as it is, so
/// that `audit verify` still finds what was changed, and the log names the writer. The other chains
/// are deleted.
enum AuditLinkDeletion {
    /// The links that one transaction deletes.
    struct Found: Sendable {
        let writer: [UInt8]
        /// The number of the last link that was deleted before.
        let former: Int64
        let last: AuditLink
        let operations: [[UInt8]]
    }

    /// A chain whose first link is old.
    struct Chain: Sendable {
        let writer: [UInt8]
        /// The link with the newest row. It stays, because the number of the next row is derived from it.
        let newest: Int64?
    }

    /// Finds the next chain whose first link is old, by the writer's id.
    static func next(after writer: [UInt8], before: Timestamp) -> Query<Chain?> {
        let reads = [oldestChain(before: .timestamp(before), writer: .blob(writer)), newestRow()]
        return Query(script: Script("retention", reads: reads)) { rows throws(StoreFailure) in
            guard let writer = try rows[0].first?.blob("writer") else { return nil }
            let newest = rows[1].first
            let isNewest = try newest?.value("writer").bytes == writer
            return Chain(writer: writer, newest: isNewest ? try newest?.optionalInteger("link") : nil)
        }
    }

    /// Finds the oldest links of a chain. The result is nil if its first link cannot be deleted.
    static func find(
        _ chain: Chain, _ expired: ExpiredRows, with authenticator: RowAuthenticator
    ) -> Query<Found?> {
        let writer = SQLValue.blob(chain.writer)
        let reads = [
            AuditReads.writer(writer: writer), AuditReads.checkpoint(writer: writer),
            links(writer: writer, before: .timestamp(expired.before), newest: .integer(chain.newest)),
        ]
        return Query(script: Script("retention", reads: reads)) { rows throws(StoreFailure) in
            guard let key = try key(rows[0], authenticator) else { return nil }
            var (former, hash) = (Int64(0), AuditLink.start)
            if let row = try rows[1].checkedRows(.auditCheckpoint).first {
                guard row.isGenuine(authenticator), let checkpoint = AuditCheckpoint(row) else { return nil }
                (former, hash) = (checkpoint.sequence, checkpoint.hash)
            }
            var last: AuditLink?
            var operations: [[UInt8]] = []
            for row in rows[2] {
                guard let link = try AuditLink(row), link.sequence == (last?.sequence ?? former) + 1,
                    link.former == last?.hash ?? hash, link.at < expired.before.sql,
                    operations.isEmpty || operations.count + link.entries.count <= expired.limit,
                    link.isGenuine(key)
                else { break }
                last = link
                operations += link.entries.map(\.operation)
            }
            return last.map { Found(writer: chain.writer, former: former, last: $0, operations: operations) }
        }
    }

    private static func key(_ writers: Rows, _ authenticator: RowAuthenticator) throws(StoreFailure) -> P256PublicKey? {
        guard let row = try writers.checkedRows(.auditWriter).first, row.isGenuine(authenticator) else { return nil }
        return row.writerKey
    }

    static func rows(_ writer: [UInt8]) -> SignedRows { checkpointOf(writer: .blob(writer)).signed }

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
        SELECT w.id AS writer FROM audit_writer w CROSS JOIN audit_link l ON l.writer = w.id
        AND l.sequence = (SELECT min(f.sequence) FROM audit_link f WHERE f.writer = w.id)
        WHERE w.id > :writer AND l.at < :before
        AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.id = (SELECT max(m.id) FROM audit m)
            AND a.writer = l.writer AND a.link = l.sequence)
        ORDER BY w.id LIMIT 1
        """)

    private static let newestRow = Statement(
        "SELECT writer, link FROM audit WHERE id = (SELECT max(id) FROM audit)")

    /// The loop checks the signature of each link, so there are few.
    private static let links = Statement(
        """
        SELECT \(AuditLink.columns) FROM audit_link WHERE writer = :writer AND at < :before
        AND (:newest IS NULL OR sequence < :newest) ORDER BY sequence LIMIT 50
        """)

    private static let checkpointOf = RowSearch(.auditCheckpoint, where: "writer = :writer")

    static let insertCheckpoint = Statement(
        into: .auditCheckpoint, once: true,
        """
        INSERT INTO audit_checkpoint (writer, sequence, hash, at)
        SELECT :writer, 0, :hash, :now /*M! FROM DUAL */ WHERE \(RetentionLease.isHeld)
        """)

    private static let moveCheckpoint = Statement(
        """
        UPDATE audit_checkpoint SET sequence = :last, hash = :hash, at = :now
        WHERE writer = :writer AND sequence = :former AND \(RetentionLease.isHeld)
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
    /// Deletes old links of one chain, or the rows of writers whose links are all deleted.
    ///
    /// - Parameter stuck: gets the ids of the writers whose chains are not as they were written.
    /// - Returns: nil if nothing is old enough, and `.some(nil)` if another relay holds the lease.
    func dropLinks(
        _ expired: ExpiredRows, by relay: RelayID, stuck: inout [String]
    ) async throws(StoreFailure) -> DeletionResult?? {
        guard let authenticator = rowAuthenticator else { return .none }
        var after: [UInt8] = []
        while let chain = try await run(AuditLinkDeletion.next(after: after, before: expired.before)) {
            after = chain.writer
            guard let found = try await run(AuditLinkDeletion.find(chain, expired, with: authenticator)) else {
                stuck.append(Hex.encode(chain.writer))
                continue
            }
            let script = Script(
                "retention", rows: [AuditLinkDeletion.rows(found.writer)],
                writes: RetentionLease.writes(relay) + AuditLinkDeletion.drop(found, at: expired.before, by: relay),
                reads: [RetentionLease.read(relay)])
            guard try await run(script)[0].first != nil else { return .some(nil) }
            return DeletionResult(
                count: found.operations.count, mark: expired.mark, isLast: false, stuck: stuck)
        }
        return try await dropWriters(expired, by: relay, authenticator)
    }
}
