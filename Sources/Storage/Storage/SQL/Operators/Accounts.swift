import Domain
import Relay
import World

/// The operator's queries about users and their phones.
public enum Accounts {
    public struct User: Sendable, Equatable {
        public let id: UserID
        public let username: String
        public let website: String
        public let email: String?
        public let phone: String?
        public let displayName: String?
        public let language: String?
        public let state: UserState
        /// The author of the lock or freeze; nil if the user is active.
        public let stoppedBy: ChangeAuthor?
        /// The state that returns when a disabled user is enabled.
        public let priorState: UserState?
        /// The source of users that owns the user; nil if the website does.
        public let directory: String?
        /// The id of the user's entry in that source.
        public let directoryID: String?
        /// The policy of the user's group: JSON of the keys that differ from the website's.
        public let policy: String?
        /// The time since which the user has proved a factor; nil if there is none.
        public let provedAt: Timestamp?
        /// The check of the person's identity; nil if no operator confirmed it.
        public let identity: Identities.Confirmation?
        public let createdAt: Timestamp
        /// The newest challenge.
        public let challenge: Challenge?
        public var devices: [Device]
        public let factors: [CodeFactor]
        public let codes: CodeLockout
        /// The time from which no login of the user succeeds.
        public let expiresAt: Timestamp?
        /// The author of the expiry: the website, or an operator.
        public let expiresBy: ChangeAuthor?
        /// Whether the user's row is not as a relay or the tool wrote it.
        public var isForged = false
    }

    public struct Challenge: Sendable, Equatable {
        public let id: ChallengeID
        public let life: ChallengeLife
        public let askedAt: Timestamp
    }

    public struct Device: Sendable, Equatable {
        public var view: DeviceView
        /// The author of the suspension or revocation.
        public let stoppedBy: ChangeAuthor?
        public let user: UserID
        public let username: String
        public let website: String
        /// The number of consecutive wrong numbers.
        public let failures: Int64
        public let failedAt: Timestamp?
        /// The attestation; nil if none was recorded.
        public let attestation: PhoneAttestation?
    }
}

// MARK: Users

extension Accounts {
    public static func user(_ username: String, of website: String) -> Query<User?> {
        let (website, username) = (SQLValue.text(website), SQLValue.text(username))
        let reads = [
            userByName(website: website, username: username), newestChallenge(website: website, username: username),
            devicesOfUser(website: website, username: username), factorsOfUser(website: website, username: username),
        ]
        return Query(script: Script("user show", reads: reads)) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            var devices: [Device] = []
            for row in rows[2] { devices.append(try device(row)) }
            var factors: [CodeFactor] = []
            for row in rows[3] { factors.append(try CodeFactors.shown(row)) }
            return User(
                id: try row.id("id"), username: try row.text("username"), website: try row.text("website_name"),
                email: try row.optionalShownAddress("email"), phone: try row.optionalShownAddress("phone"),
                displayName: try row.optionalText("display_name"), language: try row.optionalText("language"),
                state: try row.word("state"), stoppedBy: try row.optionalWord("stopped_by"),
                priorState: try row.optionalWord("prior_state"), directory: try row.optionalText("directory"),
                directoryID: try row.optionalText("directory_id"), policy: try row.optionalText("policy"),
                provedAt: try row.optionalTimestamp("proved_at"), identity: try Identities.read(row),
                createdAt: try row.timestamp("created_at"),
                challenge: try rows[1].first.map(challenge), devices: devices, factors: factors,
                codes: try row.codeLockout(), expiresAt: try row.optionalTimestamp("expires_at"),
                expiresBy: try row.optionalWord("expires_by"))
        }
    }

    private static let userByName = Statement(
        """
        SELECT u.id, u.username, w.name AS website_name, u.email, u.phone, u.display_name, u.language, u.state,
        u.stopped_by, u.prior_state, u.directory, u.directory_id, u.policy, u.proved_at, u.created_at, u.expires_at,
        u.expires_by, \(Identities.columns), \(CodeLockout.columns("u.")) \(users) WHERE \(hasName)
        """)

    /// Checks the row of a user. A query for operators also shows a row that is not genuine, because
    /// an operator must be able to judge it.
    public static func check(_ user: UserID) -> Query<Void> {
        Query(script: Script("user check", rows: [.user(user)], reads: [one()])) { _ in () }
    }

    private static let one = Statement("SELECT 1")

    private static let users = "FROM user u JOIN website w ON w.id = u.website_id"
    private static let hasName = "w.name = :website AND u.username = :username"

    private static let newestChallenge = Statement(
        """
        SELECT c.id, c.state, c.decision, c.reason, c.expires_at, c.asked_at \(users)
        JOIN challenge c ON c.id = u.challenge_id WHERE \(hasName)
        """)

    private static func challenge(_ row: Row) throws(StoreFailure) -> Challenge {
        Challenge(
            id: try row.id("id"),
            life: try row.life(),
            askedAt: try row.timestamp("asked_at"))
    }

    private static let devicesOfUser = Statement("\(devices) WHERE \(hasName) ORDER BY d.created_at, d.id")

    /// Reads the factors. The row of an address that was removed before its confirmation remains
    /// only for its counts, and is left out.
    private static let factorsOfUser = Statement(
        """
        SELECT \(CodeFactors.columns) \(users) JOIN factor f ON f.user_id = u.id
        WHERE \(hasName) AND (f.address IS NOT NULL OR f.kind NOT IN ('mail', 'sms')) ORDER BY f.created_at, f.id
        """)
}

// MARK: Phones

extension Accounts {
    /// Finds a phone by its id, which belongs to one website only. Its report is read by
    /// `DeviceReports.last`, with a check.
    public static func device(_ id: DeviceID) -> Query<Device?> {
        Query(script: Script("device show", reads: [deviceByID(device: .id(id))])) { rows throws(StoreFailure) in
            try rows[0].first.map(device)
        }
    }

    private static let deviceByID = Statement("\(devices) WHERE d.id = :device")

    private static let devices = """
        SELECT \(Phones.columnsWithoutReport),
        u.id AS user_id, u.username, w.name AS website_name, d.failures, d.failed_at, d.stopped_by,
        \(PhoneAttestation.columns)
        \(users) JOIN device d ON d.user_id = u.id
        \(PhoneAttestation.join)
        """

    private static func device(_ row: Row) throws(StoreFailure) -> Device {
        Device(
            view: try Phones.read(row), stoppedBy: try row.optionalWord("stopped_by"), user: try row.id("user_id"),
            username: try row.text("username"), website: try row.text("website_name"),
            failures: try row.integer("failures"), failedAt: try row.optionalTimestamp("failed_at"),
            attestation: try PhoneAttestation.read(row))
    }
}
