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
    /// The condition for the open challenges that a new challenge supersedes. `:known` says whether
    /// the new one is from a known browser. A login from an unknown browser does not end one from a
    /// known browser. Expired challenges keep the result `expired`, which was already reported.
    static let endedByNewer = "user_id = :user AND decided_at IS NULL AND expires_at > :now AND known <= :known"

    /// The condition for challenges `c` other than the newest one of their user.
    static let besideNewest = "c.id <> (SELECT u.challenge_id FROM user u WHERE u.id = c.user_id)"
}
