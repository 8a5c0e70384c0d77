import Relay

/// The challenges of one user that can be open at the same time.
///
/// At most one challenge of each origin is open, if the clocks of the relays agree: one from a known
/// browser, one from an unknown browser that is newer, and the newest reminder. The user's row names
/// one of them in `challenge_id`: the newest one that was not asked as a reminder while the named one
/// was open. No phone shows a reminder while another one is open. A challenge is over by the clock of
/// the relay that writes, so no script may rely on the number.
///
/// The script that stores a challenge ends the challenges of `endedByNewer`. It first locks the
/// user's row, so two logins of one user cannot both miss the other one. The script that deletes a
/// user ends all of them. It audits the end of the named challenge in its own audit row, and the ends
/// of those of `besideNamed` in further rows. It reports all of them, even if relays with different
/// clocks have left more open.
enum OpenChallenges {
    /// The condition for the open challenges that a new challenge supersedes. `:known` is the
    /// origin of the new one. A login from an unknown browser does not end one from a
    /// known browser. Expired challenges keep the result `expired`, which was already reported.
    static let endedByNewer = "user_id = :user AND decided_at IS NULL AND expires_at > :now AND known <= :known"

    /// The condition for challenges `c` other than the one that the row of their user names.
    static let besideNamed = "c.id <> (SELECT u.challenge_id FROM user u WHERE u.id = c.user_id)"
}

extension OpenChallenges {
    /// The challenge that a user's row names from now on. `:challenge` is the new one.
    static let named = """
        CASE WHEN :known = \(AskOrigin.reminder.rawValue) AND EXISTS (SELECT 1 FROM challenge o
        WHERE o.id = user.challenge_id AND o.decided_at IS NULL AND o.expires_at > :now)
        THEN challenge_id ELSE :challenge END
        """
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
