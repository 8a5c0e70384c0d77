import Crypto
import Domain
import Relay
import World

/// The words of an audit row that get another form.
struct AuditWordsChange: Sendable {
    fileprivate let operation: [UInt8]
    fileprivate let old: AuditWords
    fileprivate let new: AuditWords

    func statement(_ relay: RelayID) -> BoundStatement {
        rewrite(
            note: .text(new.note), changes: .text(new.changes), reason: .text(new.reason), operation: .blob(operation),
            oldNote: .text(old.note), oldChanges: .text(old.changes), oldReason: .text(old.reason), relay: .id(relay))
    }
}

/// The words of audit rows as a table with personal values (`PersonalRows`).
enum SealedWordRows {
    /// The next words, with the changes that they need.
    ///
    /// Words that do not fit the digest in their row stay as they are, and count as stuck, like values
    /// of rows that are not genuine.
    ///
    /// - Parameter mark: the operation of the last words that were read.
    static func next(after mark: [UInt8], _ personal: PersonalSealer, limit: Int64) -> Query<PersonalBatch> {
        let read = readWords(mark: .blob(mark), limit: .integer(limit))
        return Query(script: Script("personal", reads: [read])) { rows throws(StoreFailure) in
            var batch = PersonalBatch()
            for row in rows[0] {
                let operation = try row.blob("operation")
                batch.last = operation
                batch.checked += 1
                do {
                    if let change = try change(row, operation, personal) { batch.words.append(change) }
                } catch {
                    batch.stuck += 1
                }
            }
            batch.endIfLast(of: rows[0].count, most: limit)
            return batch
        }
    }

    /// Returns the change of a row; nil if it has the wanted form. Throws if the words do not open or do
    /// not fit.
    private static func change(
        _ row: Row, _ operation: [UInt8], _ personal: PersonalSealer
    ) throws -> AuditWordsChange? {
        let old = AuditWords(
            note: try row.optionalText("note"), changes: try row.optionalText("changes"),
            reason: try row.optionalText("reason"))
        let clear = try old.opened(by: personal, for: operation)
        let new = try old.rewritten(clear, by: personal, for: operation)
        guard new != old else { return nil }
        guard try row.blob("detail") == clear.digest(salt: try row.blob("salt")) else {
            throw AuditWords.Unreadable.forged
        }
        return AuditWordsChange(operation: operation, old: old, new: new)
    }

    private static let readWords = Statement(
        """
        SELECT d.operation, d.salt, d.note, d.changes, d.reason, a.detail
        FROM audit_detail d LEFT JOIN audit a ON a.operation = d.operation
        WHERE d.operation > :mark ORDER BY d.operation LIMIT :limit
        """)
}

private let rewrite = Statement(
    """
    UPDATE audit_detail SET note = :note, changes = :changes, reason = :reason
    WHERE operation = :operation AND note /*M! <=> */ /*S! IS */ :oldNote
    AND changes /*M! <=> */ /*S! IS */ :oldChanges AND reason /*M! <=> */ /*S! IS */ :oldReason
    AND \(PersonalSealingRuns.isHeld)
    """)
