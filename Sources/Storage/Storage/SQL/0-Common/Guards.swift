/// The conditions by which the later statements of a change depend on its first ones. They name the
/// parameters `:operation`, `:user` and `:challenge`.
enum Guards {
    /// The audit row of the operation exists.
    static let audited = "EXISTS (SELECT 1 FROM audit WHERE operation = :operation)"

    /// The operation has marked the user's row.
    static let userMarked = "EXISTS (SELECT 1 FROM user u WHERE u.id = :user AND u.operation = :operation)"

    /// The user `u` can log in at `:now`.
    static let mayLogIn = "u.state = 'active' AND (u.expires_at IS NULL OR u.expires_at > :now)"

    /// The same condition for a statement that changes the table `user`, which has no alias there.
    static let userMayLogIn = "user.state = 'active' AND (user.expires_at IS NULL OR user.expires_at > :now)"

    /// The expression for the state of the user `u` at `:now`.
    static let userState = "CASE WHEN u.state = 'active' AND u.expires_at <= :now THEN 'expired' ELSE u.state END"

    /// The operation has written the challenge's row. In a change that ends a challenge, it has
    /// ended this one.
    static let challengeWritten =
        "EXISTS (SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.operation = :operation)"
}
