/// The requirements of a website for a login and its proof. The defaults are the strong form: the
/// relay can refuse or delay a login, but it cannot let anybody in.
///
///     var rules = Requirements()
///     rules.leastUserVerification = .biometric
public struct Requirements: Sendable, Equatable {
    /// The name that phones must show; nil lets the operator rename the website.
    public var displayName: String?
    /// The weakest accepted verification of the phone's user.
    public var leastUserVerification = UserVerification.none
    /// The longest accepted time since that verification, in seconds; nil accepts any time.
    public var longestVerificationAge: Int64?
    /// The least number of digits of the number, at most six. With 0 the website sends no number and
    /// accepts that of the relay. This weakens the check: a dishonest relay could leave the number out.
    public var leastDigits = 2
    /// Whether the relay is trusted with the logins of users of whom no phone was ever pinned.
    public var allowUnpinned = false
    /// Whether the relay is trusted that a code was right. No phone signs it.
    public var acceptCodes = false

    /// Creates the strong form. Set what differs.
    public init() {}

    static let mostDigits = 6
}
