import Relay

/// The challenges of one user that can be open at the same time.
///
/// At most two challenges of a user are open, if the clocks of the relays agree. One is the newest,
/// which the user's row names in `challenge_id`. The other is older, from a known browser, and exists
/// only if the newest is from an unknown browser. A challenge is over by the clock of the relay that
/// writes, so no script may rely on the number.
///
/// The script that stores a challenge ends the challenges of `endedByNewer`. It first locks the
/// user's row, so two logins of one user cannot both miss the other one. The script that deletes a user ends all of them. It audits the end of the newest
/// challenge in its own audit row, and the ends of those of `besideNewest` in further rows. It
/// reports all of them, even if relays with different clocks have left more than two open.
enum OpenChallenges {
    /// The condition for the open challenges that a new challenge supersedes. `:known` is the
    /// origin of the new one. A login from an unknown browser does not end one from a
    /// known browser. Expired challenges keep the result `expired`, which was already reported.
    static let endedByNewer = "user_id = :user AND decided_at IS NULL AND expires_at > :now AND known <= :known"

    /// The condition for challenges `c` other than the newest one of their user.
    static let besideNewest = "c.id <> (SELECT u.challenge_id FROM user u WHERE u.id = c.user_id)"
}

extension SQLValue {
    static func origin(_ origin: AskOrigin) -> SQLValue { .integer(Int64(origin.rawValue)) }
}

extension Row {
    func askOrigin(_ column: SQLName) throws(StoreFailure) -> AskOrigin {
        let value = try integer(column)
        guard let origin = AskOrigin(rawValue: Int(value)) else {
            throw .internal("column \(column) holds the unknown origin \(value)")
        }
        return origin
    }
}
