import Crypto
import Domain
import Relay
import World

/// The deletion of writers whose links retention has all deleted.
///
/// Invariant: the checkpoint `AuditCheckpoint.retired` has a time and a MAC. A head outside of the
/// store whose chain is missing is right if it is older than that time: retention deletes every link
/// before it.
///
/// Failures: a program writes in a chain whose writer was deleted. So a writer is deleted only when no
/// program writes as this writer any more (`AuditChain.lifetime`).
enum AuditWriterDeletion {
    /// The writers of one page that began before a time and have a checkpoint but no link.
    static func page(after writer: [UInt8], startedBefore: Timestamp) -> BoundStatement {
        ended(writer: .blob(writer), started: .timestamp(startedBefore))
    }

    /// A day more than the lifetime, because clocks differ.
    static let lifetime = AuditChain.lifetime + .seconds(86_400)

    static let pageSize = 100

    /// Deletes writers, if the relay holds the lease of the task.
    static func drop(_ writers: [[UInt8]], _ expired: ExpiredRows, by relay: RelayID) -> [BoundStatement] {
        let (before, relay) = (SQLValue.timestamp(expired.before), SQLValue.id(relay))
        let retired = SQLValue.blob(AuditCheckpoint.retired)
        return [
            AuditLinkDeletion.insertCheckpoint(
                writer: retired, hash: .blob(AuditLink.start), now: before, relay: relay)
        ]
            + writers.flatMap { writer in
                [
                    countWriter(before: before, retired: retired, writer: .blob(writer), relay: relay),
                    dropWriter(writer: .blob(writer), relay: relay),
                    dropCheckpoint(writer: .blob(writer), relay: relay),
                ]
            }
    }

    private static let ended = Statement(
        """
        SELECT \(SignedTable.auditWriter.columns) FROM audit_writer WHERE id > :writer AND started_at < :started
        AND EXISTS (SELECT 1 FROM audit_checkpoint c WHERE c.writer = audit_writer.id)
        AND NOT EXISTS (SELECT 1 FROM audit_link l WHERE l.writer = audit_writer.id)
        ORDER BY id LIMIT \(pageSize)
        """)

    private static let isEnded = """
        EXISTS (SELECT 1 FROM audit_checkpoint c WHERE c.writer = :writer)
        AND NOT EXISTS (SELECT 1 FROM audit_link l WHERE l.writer = :writer)
        """

    private static let countWriter = Statement(
        """
        UPDATE audit_checkpoint SET sequence = sequence + 1, at = CASE WHEN at < :before THEN :before ELSE at END
        WHERE writer = :retired AND EXISTS (SELECT 1 FROM audit_writer w WHERE w.id = :writer)
        AND NOT EXISTS (SELECT 1 FROM audit_link l WHERE l.writer = :writer) AND \(RetentionLease.isHeld)
        """)

    private static let dropWriter = Statement(
        "DELETE FROM audit_writer WHERE id = :writer AND \(isEnded) AND \(RetentionLease.isHeld)")

    private static let dropCheckpoint = Statement(
        """
        DELETE FROM audit_checkpoint WHERE writer = :writer
        AND NOT EXISTS (SELECT 1 FROM audit_writer w WHERE w.id = :writer) AND \(RetentionLease.isHeld)
        """)
}

extension Store {
    /// Deletes the rows of writers whose links are all deleted. The answer is as that of `dropLinks`.
    func dropWriters(
        _ expired: ExpiredRows, by relay: RelayID, _ authenticator: RowAuthenticator
    ) async throws(StoreFailure) -> DeletionResult?? {
        let oldest = time.now() - AuditWriterDeletion.lifetime
        let started = expired.before < oldest ? expired.before : oldest
        var after: [UInt8] = []
        while true {
            let read = AuditWriterDeletion.page(after: after, startedBefore: started)
            let page = try await run(Script("retention", reads: [read]))[0].checkedRows(.auditWriter)
            var writers: [[UInt8]] = []
            for row in page {
                guard case .blob(let id) = row.values[0] else { continue }
                after = id
                guard row.isGenuine(authenticator) else { continue }
                let checkpoint = try await run(
                    Script("retention", reads: [AuditReads.checkpoint(writer: .blob(id))]))[0]
                    .checkedRows(.auditCheckpoint).first
                if checkpoint?.isGenuine(authenticator) == true { writers.append(id) }
            }
            if !writers.isEmpty {
                let script = Script(
                    "retention", rows: [AuditLinkDeletion.rows(AuditCheckpoint.retired)],
                    writes: RetentionLease.writes(relay) + AuditWriterDeletion.drop(writers, expired, by: relay),
                    reads: [RetentionLease.read(relay)])
                guard try await run(script)[0].first != nil else { return .some(nil) }
            }
            guard page.count == AuditWriterDeletion.pageSize else { return .none }
        }
    }
}
