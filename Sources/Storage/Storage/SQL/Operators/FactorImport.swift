import Domain
import Relay
import World

/// The operator's import of tokens for users, from the files of the tokens' makers.
public enum FactorImport {
    public struct Subject: Sendable {
        public let user: UserID
        /// The user's active factor of the requested kind; nil if there is none.
        public let held: Held?
    }

    public struct Held: Sendable {
        public let id: FactorID
        public let secret: [UInt8]?
    }

    /// The new factor.
    public struct New: Sendable {
        public let id: FactorID
        public let user: UserID
        public let kind: Factor
        public let secret: [UInt8]
        public let sealedBy: String
        public let algorithm: OTPAlgorithm
        public let digits: Int
        public let period: Int?
        public let counter: Int64
        public let createdAt: Timestamp

        public init(
            id: FactorID, user: UserID, kind: Factor, secret: [UInt8], sealedBy: String, algorithm: OTPAlgorithm,
            digits: Int, period: Int?, counter: Int64, createdAt: Timestamp
        ) {
            self.id = id
            self.user = user
            self.kind = kind
            self.secret = secret
            self.sealedBy = sealedBy
            self.algorithm = algorithm
            self.digits = digits
            self.period = period
            self.counter = counter
            self.createdAt = createdAt
        }
    }

    /// The treatment of an active factor of the same kind.
    public enum Meeting: Sendable, Equatable {
        case keep
        case replace
        /// The existing factor has the same secret. Its used codes stay used.
        case renew(FactorID)
    }

    /// Finds the users. The answer has one entry for each name; nil if the website has no such
    /// user.
    public static func subjects(
        _ asked: [(username: String, kind: Factor)], of website: WebsiteID
    ) -> Query<[Subject?]> {
        let reads = asked.map { BoundStatement(subject, .word($0.kind), .id(website), .text($0.username)) }
        // The website's row is checked, too: the operator chose it by name, and somebody could have
        // exchanged the names of two websites.
        let rows = [.website(website)] + asked.map { SignedRows.user(named: $0.username, of: website) }
        return Query(script: Script("import", rows: rows, reads: reads)) { answers throws(StoreFailure) in
            var subjects: [Subject?] = []
            for rows in answers {
                guard let row = rows.first else {
                    subjects.append(nil)
                    continue
                }
                let id: FactorID? = try row.optionalID(1)
                let secret = try row.optionalBlob(2)
                subjects.append(Subject(user: try row.id(0), held: id.map { Held(id: $0, secret: secret) }))
            }
            return subjects
        }
    }

    /// Writes the factor, which is active at once. The answer is false if the existing factor must
    /// be kept or is not the one that was read. It is also false if the user was deleted. Wrong
    /// codes stay counted, and no right code of the new token clears them.
    public static func write(_ new: New, _ meeting: Meeting, as operation: Operation) -> Query<Bool> {
        let same: FactorID? = if case .renew(let id) = meeting { id } else { nil }
        let mine: [SQLValue] = [.id(new.user), .id(operation)]
        let traits: [SQLValue] = [
            .id(new.id), .blob(new.secret), .text(new.sealedBy), .word(new.algorithm), .integer(Int64(new.digits)),
            new.period.map { .integer(Int64($0)) } ?? .null, .timestamp(new.createdAt), .timestamp(new.createdAt),
            .id(operation),
        ]
        let counter = SQLValue.integer(new.counter)
        // The counter of the same token is copied from the existing row, which gets a new id.
        let renewed = same.map { [SignedRows.factor($0).signed] } ?? []
        return Query(
            change: Change(
                "import", operation, rows: [.user(new.user).signed, .factor(new.id).signed] + renewed,
                [
                    BoundStatement(Locks.hold, .id(new.user)),
                    BoundStatement(
                        markUser, .id(operation), .id(new.user), .bool(meeting == .replace), .word(new.kind),
                        .word(new.kind), .id(same)),
                    CodeFailures.keptOfMarked(new.kind, of: new.user, as: operation),
                    BoundStatement(
                        replaceFactor,
                        values: traits + [.bool(same != nil), counter, counter]
                            + [.id(new.user), .word(new.kind)] + mine),
                    BoundStatement(insertFactor, values: [.word(new.kind), counter] + traits + mine),
                    BoundStatement(
                        auditImport, .id(operation), .timestamp(new.createdAt), .word(new.kind), .id(new.user),
                        .id(operation)),
                    BoundStatement(prove, values: [.timestamp(new.createdAt)] + mine),
                ])
        ) { rows in rows.happened }
    }
}

private let subject = Statement(
    """
    SELECT u.id, f.id, f.secret FROM user u
    LEFT JOIN factor f ON f.user_id = u.id AND f.kind = ? AND f.state = 'active'
    WHERE u.website_id = ? AND u.username = ?
    """)

private let held = "SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.state = 'active' AND f.kind = ?"

private let markUser = Statement(
    "UPDATE user SET operation = ? WHERE id = ? AND (? = 1 OR NOT EXISTS (\(held)) OR EXISTS (\(held) AND f.id = ?))")

private let marked = " EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)"

private let replaceFactor = Statement(
    moving: .factor,
    """
    UPDATE factor SET id = ?, secret = ?, sealed_by = ?, algorithm = ?, digits = ?, period = ?, created_at = ?,
    confirmed_at = ?, operation = ?, counter = CASE WHEN ? = 1 AND counter > ? THEN counter ELSE ? END,
    address = NULL, approval = NULL, failures = 0, failed_at = NULL WHERE user_id = ? AND kind = ? AND state = 'active' AND
    """ + marked)

private let insertFactor = Statement(
    into: .factor, once: true,
    """
    INSERT INTO factor
    (kind, counter, id, secret, sealed_by, algorithm, digits, period, created_at, confirmed_at, operation, state, failures,
    user_id)
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', 0, u.id FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let auditImport = Statement(
    Audit.columns + """
         SELECT ?, ?, 'factor.imported', u.website_id, u.id, NULL, NULL, ?, NULL FROM user u
        WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)

/// Records that the user has proved a factor. After the first token, as after the first phone, each
/// further factor needs the user's approval.
private let prove = Statement(
    "UPDATE user SET proved_at = ? WHERE id = ? AND operation = ? AND proved_at IS NULL")
