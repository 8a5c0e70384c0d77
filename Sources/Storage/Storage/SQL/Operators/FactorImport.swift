import Domain
import Relay
import World

/// Tokens that an operator gives to users, as the files of their makers describe them.
public enum FactorImport {
    public struct Subject: Sendable {
        public let user: UserID
        /// Of the kind that was asked for, where one counts.
        public let held: Held?
    }

    public struct Held: Sendable {
        public let id: FactorID
        public let secret: [UInt8]?
    }

    /// A factor as it is to be.
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

    /// What is done where the user has a factor of that kind already.
    public enum Meeting: Sendable, Equatable {
        case keep
        case replace
        /// This very one has the same secret: what was used of it stays used.
        case renew(FactorID)
    }

    /// One answer for each; nil where the website has no such user.
    public static func subjects(
        _ asked: [(username: String, kind: Factor)], of website: WebsiteID
    ) -> Query<[Subject?]> {
        let reads = asked.map { BoundStatement(subject, .word($0.kind), .id(website), .text($0.username)) }
        // The website's row too: an operator has named it, and the names of two could have been exchanged.
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

    /// It counts at once. False where one is there that has to be kept, or is another than was read, or the user has gone.
    /// Wrong codes that were counted stay the user's: no right code of the new token clears them.
    public static func write(_ new: New, _ meeting: Meeting, as operation: Operation) -> Query<Bool> {
        let same: FactorID? = if case .renew(let id) = meeting { id } else { nil }
        let mine: [SQLValue] = [.id(new.user), .id(operation)]
        let traits: [SQLValue] = [
            .id(new.id), .blob(new.secret), .text(new.sealedBy), .word(new.algorithm), .integer(Int64(new.digits)),
            new.period.map { .integer(Int64($0)) } ?? .null, .timestamp(new.createdAt), .timestamp(new.createdAt),
            .id(operation),
        ]
        let counter = SQLValue.integer(new.counter)
        // The counter of the same token is taken from the row that is renewed, which gets a new id.
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

/// From the first token on, as from the first phone, whatever comes further needs the user's approval.
private let prove = Statement(
    "UPDATE user SET proved_at = ? WHERE id = ? AND operation = ? AND proved_at IS NULL")
