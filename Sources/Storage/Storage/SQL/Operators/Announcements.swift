import Domain
import Relay
import World

/// The announcements of account events that reached nobody, because no mail server was set or the
/// user had no address.
public enum Announcements {
    public struct Unsent: Sendable, Equatable {
        public let count: Int64
        /// The time of the last one; nil if there was none.
        public let lastAt: Timestamp?

        public init(count: Int64, lastAt: Timestamp?) {
            self.count = count
            self.lastAt = lastAt
        }
    }

    /// Counts the announcements to a user that reached nobody, as far as the audit is kept.
    public static func unsent(to user: UserID) -> Query<Unsent> {
        let read = countUnsent.bound(
            ["user": .id(user)], lists: ["reason": UnsentAnnouncement.Reason.lasting.map { .text($0.text) }])
        return Query(script: Script("announcements", reads: [read])) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return Unsent(count: 0, lastAt: nil) }
            return Unsent(count: try row.integer("unsent"), lastAt: try row.optionalTimestamp("last_at"))
        }
    }

    /// Mails with codes belong to a login. The statement has exactly two parameters for reasons.
    private static let countUnsent = Statement(
        """
        SELECT count(*) AS unsent, max(a.at) AS last_at FROM audit a
        WHERE a.user_id = :user AND a.event = 'mail.settled' AND a.challenge_id IS NULL
        AND a.outcome IN (:reason1, :reason2)
        """)
}

extension Accounts {
    /// Counts the recovery codes of a user that were not used yet.
    public static func unusedRecoveryCodes(of user: UserID) -> Query<Int64> {
        Query(script: Script("recovery codes", reads: [unusedCodes(user: .id(user))])) { rows throws(StoreFailure) in
            try rows[0].first?.integer("unused") ?? 0
        }
    }

    private static let unusedCodes = Statement(
        """
        SELECT count(*) AS unused FROM recovery_code r JOIN factor f ON f.id = r.factor_id
        WHERE r.user_id = :user AND r.used_at IS NULL AND f.state = 'active'
        """)
}
