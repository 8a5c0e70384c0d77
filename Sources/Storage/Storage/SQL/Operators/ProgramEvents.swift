import Domain
import Relay
import World

/// Audit rows about a program itself: a start, a step of `rekey`, a backup, an export.
public enum ProgramEvents {
    /// Records an event.
    ///
    /// - Parameters:
    ///   - event: the name of the event, such as `daemon.started`.
    ///   - subject: whom and what the event is about.
    ///   - outcome: how it ended, in one word.
    ///   - note: free text. A long one is cut.
    ///   - changes: the values before and after, as JSON.
    public static func record(
        _ event: String, about subject: AuditSubject = AuditSubject(), outcome: String? = nil, note: String? = nil,
        changes: String? = nil, at now: Timestamp, as operation: Operation
    ) -> Query<Void> {
        Query(
            change: Change(
                "event", operation,
                [
                    insert(
                        operation: .id(operation), now: .timestamp(now), event: .text(event),
                        website: .id(subject.website), user: .id(subject.user), device: .id(subject.device),
                        outcome: .text(outcome),
                        note: .text(note.map { String($0.unicodeScalars.prefix(noteLimit)) }), changes: .text(changes))
                ])
        ) { _ in () }
    }

    /// The most characters that `audit_detail.note` has room for.
    private static let noteLimit = 500

    private static let insert = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
        SELECT :operation, :now, :event, :website, :user, :device, :outcome /*M! FROM DUAL */ WHERE 1 = 1
        \(Audit.once)
        """)
}
