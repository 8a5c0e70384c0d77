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
}

// MARK: The users

extension FactorImport {
    /// Finds the users. The answer has one entry for each name; nil if the website has no such
    /// user.
    public static func subjects(
        _ asked: [(username: String, kind: Factor)], of website: WebsiteID
    ) -> Query<[Subject?]> {
        let reads = asked.map {
            subject(kind: .word($0.kind), website: .id(website), username: .text($0.username))
        }
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
                let id: FactorID? = try row.optionalID("factor_id")
                let secret = try row.optionalBlob("secret")
                subjects.append(
                    Subject(user: try row.id("user_id"), held: id.map { Held(id: $0, secret: secret) }))
            }
            return subjects
        }
    }

    private static let subject = Statement(
        """
        SELECT u.id AS user_id, f.id AS factor_id, f.secret FROM user u
        LEFT JOIN factor f ON f.user_id = u.id AND f.kind = :kind AND f.state = 'active'
        WHERE u.website_id = :website AND u.username = :username
        """)
}

// MARK: The import

extension FactorImport {
    /// Writes the factor, which is active at once. The answer is false if the existing factor must
    /// be kept or is not the one that was read. It is also false if the user was deleted. Wrong
    /// codes stay counted, and no right code of the new token clears them.
    public static func write(_ new: New, _ meeting: Meeting, as operation: Operation) -> Query<Bool> {
        let same: FactorID? = if case .renew(let id) = meeting { id } else { nil }
        let (user, now) = (SQLValue.id(new.user), SQLValue.timestamp(new.createdAt))
        // The counter of the same token is copied from the existing row, which gets a new id.
        let renewed = same.map { [SignedRows.factor($0).signed] } ?? []
        return Query(
            change: Change(
                "import", operation, rows: [.user(new.user).signed, .factor(new.id).signed] + renewed,
                [
                    Locks.hold(user: user),
                    markUser(
                        operation: .id(operation), user: user, isReplacing: .bool(meeting == .replace),
                        kind: .word(new.kind), same: .id(same)),
                    CodeFailures.keptOfMarked(new.kind, of: new.user, as: operation),
                    new.replacement(isSame: same != nil, as: operation), new.insertion(as: operation),
                    auditImport(operation: .id(operation), now: now, kind: .word(new.kind), user: user),
                    prove(now: now, user: user, operation: .id(operation)),
                ])
        ) { rows in rows.happened }
    }

    private static let markUser = Statement(
        """
        UPDATE user SET operation = :operation WHERE id = :user
        AND (:isReplacing = 1 OR NOT EXISTS (\(held)) OR EXISTS (\(held) AND f.id = :same))
        """)

    private static let held =
        "SELECT 1 FROM factor f WHERE f.user_id = user.id AND f.state = 'active' AND f.kind = :kind"

    private static let auditImport = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'factor.imported', u.website_id, u.id, :kind FROM user u
        WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)

    /// Records that the user has proved a factor. After the first token, as after the first phone,
    /// each further factor needs the user's approval.
    private static let prove = Statement(
        "UPDATE user SET proved_at = :now WHERE id = :user AND operation = :operation AND proved_at IS NULL")
}

extension FactorImport.New {
    /// Replaces the active factor of the same kind.
    ///
    /// - Parameter isSame: whether the existing factor has the same secret, so that its counter
    ///   must not go back.
    fileprivate func replacement(isSame: Bool, as operation: Operation) -> BoundStatement {
        replaceFactor(
            factor: .id(id), secret: .blob(secret), key: .text(sealedBy), algorithm: .word(algorithm),
            digits: .integer(Int64(digits)), period: .integer(period.map { Int64($0) }), now: .timestamp(createdAt),
            operation: .id(operation), isSame: .bool(isSame), counter: .integer(counter), user: .id(user),
            kind: .word(kind))
    }

    fileprivate func insertion(as operation: Operation) -> BoundStatement {
        insertFactor(
            factor: .id(id), kind: .word(kind), secret: .blob(secret), key: .text(sealedBy),
            algorithm: .word(algorithm), digits: .integer(Int64(digits)), period: .integer(period.map { Int64($0) }),
            counter: .integer(counter), now: .timestamp(createdAt), operation: .id(operation), user: .id(user))
    }
}

private let replaceFactor = Statement(
    moving: .factor,
    """
    UPDATE factor SET id = :factor, secret = :secret, sealed_by = :key, algorithm = :algorithm, digits = :digits,
    period = :period, created_at = :now, confirmed_at = :now, operation = :operation,
    counter = CASE WHEN :isSame = 1 AND counter > :counter THEN counter ELSE :counter END,
    last_code_at = CASE WHEN :isSame = 1 THEN last_code_at END,
    resync_since = CASE WHEN :isSame = 1 THEN resync_since END, address = NULL, approval = NULL, failures = 0,
    failed_at = NULL
    WHERE user_id = :user AND kind = :kind AND state = 'active' AND \(Guards.userMarked)
    """)

private let insertFactor = Statement(
    into: .factor, once: true,
    """
    INSERT INTO factor
    (id, kind, secret, sealed_by, algorithm, digits, period, counter, created_at, confirmed_at, operation, state, failures,
    user_id)
    SELECT :factor, :kind, :secret, :key, :algorithm, :digits, :period, :counter, :now, :now, :operation, 'active', 0,
    u.id FROM user u WHERE u.id = :user AND u.operation = :operation
    """)
