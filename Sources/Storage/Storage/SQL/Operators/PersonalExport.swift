import Domain
import Relay
import World

/// All rows that the store holds of one person, for the answer to a request for personal data.
///
/// Each statement selects whole rows, so a new column is part of the export unless it is among
/// `withheld`. A test compares the tables with those of the schema that belong to a user.
public enum PersonalExport {
    /// The rows of one table.
    public struct Part: Sendable {
        public let table: String
        /// The rows, each with the names of its columns. Sealed personal values are opened.
        public let rows: [[(name: String, value: SQLValue)]]
    }

    /// The columns that are left out: keys and digests of secrets, with which somebody could answer
    /// for the person, and the relay's own marks on its rows.
    public static let withheld: Set<String> = [
        "mac", "secret", "sealed_by", "digest", "revocation", "link", "handle", "cancel", "operation", "holder",
        "lease", "nonce", "approval", "approves", "used_by", "unlock_operation", "pin_key", "puk_key",
        "activation_code", "salt", "detail", "writer",
    ]

    /// Reads everything in one transaction; empty if there is no such user.
    public static func all(of user: UserID) -> Query<[Part]> {
        let id = SQLValue.id(user)
        let parts: [(table: String, read: BoundStatement)] = [
            ("user", userRow(user: id)), ("device", devices(user: id)), ("device_report", reports(user: id)),
            ("attestation", attestations(user: id)), ("web_phone", webPhones(user: id)),
            ("certificate", certificates(user: id)),
            ("tagged_certificate", taggedCertificates(user: id)), ("used_key", usedKeys(user: id)),
            ("activation", activations(user: id)), ("factor", factors(user: id)), ("sent_code", sentCodes(user: id)),
            ("recovery_code", recoveryCodes(user: id)), ("temporary_code", temporaryCodes(user: id)),
            ("recovery", recoveries(user: id)),
            ("notice", notices(user: id)), ("sms_usage", textMessages(scope: .text(user.text))),
            ("challenge", challenges(user: id)), ("step", steps(user: id)), ("outbox", entries(user: id)),
            ("outbox", entriesOfLogins(user: id)), ("audit", trail(user: id)),
            ("audit_detail", words(user: id)),
        ]
        return Query(script: Script("user export", reads: parts.map(\.read))) { rows throws(StoreFailure) in
            guard rows.first?.isEmpty == false else { return [] }
            var found: [Part] = []
            for (part, rows) in zip(parts, rows) {
                let isWords = part.table == "audit_detail"
                var shown: [[(name: String, value: SQLValue)]] = []
                for row in rows {
                    let members = isWords ? try row.membersWithWords() : row.members
                    shown.append(members.filter { !withheld.contains($0.name) })
                }
                if let last = found.last, last.table == part.table {
                    found[found.count - 1] = Part(table: part.table, rows: last.rows + shown)
                } else {
                    found.append(Part(table: part.table, rows: shown))
                }
            }
            return found
        }
    }

    /// Audits that an operator has exported the data of a user. The answer is false if the user was
    /// deleted.
    public static func audit(of user: UserID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        let write = auditExport(
            operation: .id(operation), now: .timestamp(now), author: .word(ChangeAuthor.operator), user: .id(user))
        return Query(change: Change("user export", operation, [write])) { rows in rows.happened }
    }

    private static let auditExport = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'user.exported', u.website_id, u.id, :author FROM user u WHERE u.id = :user
        \(Audit.once)
        """)

    private static let userRow = Statement(
        "SELECT u.*, w.name AS website_name FROM user u JOIN website w ON w.id = u.website_id WHERE u.id = :user")
    private static let devices = Statement("SELECT * FROM device WHERE user_id = :user ORDER BY created_at, id")
    private static let reports = Statement(
        "SELECT r.* FROM device d JOIN device_report r ON r.device_id = d.id WHERE d.user_id = :user ORDER BY d.id")
    private static let attestations = Statement(
        "SELECT * FROM attestation WHERE user_id = :user ORDER BY device_id")
    private static let webPhones = Statement(
        "SELECT * FROM web_phone WHERE user_id = :user ORDER BY device_id", since: 3)
    private static let certificates = Statement(
        "SELECT c.* FROM device d JOIN certificate c ON c.device_id = d.id WHERE d.user_id = :user ORDER BY c.serial")
    private static let taggedCertificates = Statement(
        "SELECT * FROM tagged_certificate WHERE user_id = :user ORDER BY device_id, tag")
    /// Keys have no index for phones: they are looked up by their thumbprints everywhere else.
    private static let usedKeys = Statement(
        """
        SELECT k.* FROM used_key k WHERE k.device_id IN (SELECT d.id FROM device d WHERE d.user_id = :user)
        ORDER BY k.thumbprint
        """)
    private static let activations = Statement("SELECT * FROM activation WHERE user_id = :user ORDER BY created_at")
    private static let factors = Statement("SELECT * FROM factor WHERE user_id = :user ORDER BY kind, state")
    private static let sentCodes = Statement(
        """
        SELECT s.* FROM factor f JOIN sent_code s ON s.factor_id = f.id WHERE f.user_id = :user
        ORDER BY f.id, s.counter
        """)
    private static let recoveryCodes = Statement(
        "SELECT * FROM recovery_code WHERE user_id = :user ORDER BY factor_id, position")
    private static let temporaryCodes = Statement("SELECT * FROM temporary_code WHERE user_id = :user")
    private static let recoveries = Statement("SELECT * FROM recovery WHERE user_id = :user ORDER BY created_at, id")
    private static let notices = Statement("SELECT * FROM notice WHERE user_id = :user ORDER BY created_at, id")
    private static let textMessages = Statement("SELECT * FROM sms_usage WHERE scope = :scope ORDER BY period")
    private static let challenges = Statement("SELECT * FROM challenge WHERE user_id = :user ORDER BY asked_at, id")
    private static let steps = Statement(
        """
        SELECT s.* FROM challenge c JOIN step s ON s.challenge_id = c.id WHERE c.user_id = :user
        ORDER BY c.asked_at, s.challenge_id, s.ordinal
        """)
    private static let entries = Statement("SELECT * FROM outbox WHERE user_id = :user ORDER BY id")
    private static let entriesOfLogins = Statement(
        """
        SELECT o.* FROM challenge c JOIN outbox o ON o.challenge_id = c.id
        WHERE c.user_id = :user AND o.user_id IS NULL ORDER BY o.id
        """)
    private static let trail = Statement("SELECT * FROM audit WHERE user_id = :user ORDER BY at, id")
    private static let words = Statement(
        """
        SELECT a.id, d.operation, d.note, d.changes, d.reason FROM audit a JOIN audit_detail d ON d.operation = a.operation
        WHERE a.user_id = :user ORDER BY a.at, a.id
        """)
}
