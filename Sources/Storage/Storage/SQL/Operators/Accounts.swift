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
        /// The time since which the user has proved a factor; nil if there is none.
        public let provedAt: Timestamp?
        public let createdAt: Timestamp
        /// The newest challenge.
        public let challenge: Challenge?
        public let devices: [Device]
        public let factors: [CodeFactor]
        public let codes: CodeLockout
    }

    public struct Challenge: Sendable, Equatable {
        public let id: ChallengeID
        public let life: ChallengeLife
        public let askedAt: Timestamp
    }

    public struct Device: Sendable, Equatable {
        public let view: DeviceView
        /// The author of the suspension or revocation.
        public let stoppedBy: ChangeAuthor?
        public let user: UserID
        public let username: String
        public let website: String
        /// The number of consecutive wrong numbers.
        public let failures: Int64
        public let failedAt: Timestamp?
    }

    public static func user(_ username: String, of website: String) -> Query<User?> {
        let name: [SQLValue] = [.text(website), .text(username)]
        let reads = [
            BoundStatement(userByName, values: name), BoundStatement(newestChallenge, values: name),
            BoundStatement(devicesOfUser, values: name),
            BoundStatement(factorsOfUser, values: name),
        ]
        return Query(script: Script("user show", reads: reads)) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            var devices: [Device] = []
            for row in rows[2] { devices.append(try row.accountDevice()) }
            var factors: [CodeFactor] = []
            for row in rows[3] { factors.append(try CodeFactors.read(row)) }
            return User(
                id: try row.id(0), username: try row.text(1), website: try row.text(2),
                email: try row.optionalText(3), phone: try row.optionalText(4), displayName: try row.optionalText(5),
                language: try row.optionalText(6), state: try row.word(7), stoppedBy: try row.optionalWord(10),
                provedAt: try row.optionalTimestamp(8),
                createdAt: try row.timestamp(9), challenge: try rows[1].first?.accountChallenge(), devices: devices,
                factors: factors, codes: try row.codeLockout())
        }
    }

    /// Finds a phone by its id, which belongs to one website only.
    public static func device(_ id: DeviceID) -> Query<Device?> {
        Query(script: Script("device show", reads: [BoundStatement(deviceByID, .id(id))])) {
            rows throws(StoreFailure) in
            try rows[0].first?.accountDevice()
        }
    }
}

extension Row {
    fileprivate func accountChallenge() throws(StoreFailure) -> Accounts.Challenge {
        Accounts.Challenge(
            id: try id(0),
            life: ChallengeLife(
                state: try word(1), decision: try optionalWord(2), reason: try optionalWord(3),
                expiresAt: try timestamp(4)),
            askedAt: try timestamp(5))
    }

    fileprivate func accountDevice() throws(StoreFailure) -> Accounts.Device {
        Accounts.Device(
            view: try device(0), stoppedBy: try optionalWord(14), user: try id(9), username: try text(10),
            website: try text(11),
            failures: try integer(12), failedAt: try optionalTimestamp(13))
    }
}

private let ofUser = " FROM user u JOIN website w ON w.id = u.website_id"
private let named = " WHERE w.name = ? AND u.username = ?"

private let userByName = Statement(
    """
    SELECT u.id, u.username, w.name, u.email, u.phone, u.display_name, u.language, u.state, u.proved_at, u.created_at,
    u.stopped_by,
    """ + " " + CodeLockout.columns("u.") + ofUser + named)

private let newestChallenge = Statement(
    "SELECT c.id, c.state, c.decision, c.reason, c.expires_at, c.asked_at" + ofUser
        + " JOIN challenge c ON c.id = u.challenge_id" + named)

private let devices =
    """
    SELECT d.id, d.name, d.platform, d.state, d.public_key, d.binding, d.created_at, d.last_seen_at,
    d.push_token, u.id, u.username, w.name, d.failures, d.failed_at, d.stopped_by
    """ + ofUser + " JOIN device d ON d.user_id = u.id"
private let devicesOfUser = Statement(devices + named + " ORDER BY d.created_at, d.id")
/// Reads the factors. The row of an address that was removed before its confirmation remains only
/// for its counts, and is left out.
private let factorsOfUser = Statement(
    "SELECT " + CodeFactors.columns + ofUser + " JOIN factor f ON f.user_id = u.id" + named
        + " AND (f.address IS NOT NULL OR f.kind NOT IN ('mail', 'sms')) ORDER BY f.created_at, f.id")
private let deviceByID = Statement(devices + " WHERE d.id = ?")
