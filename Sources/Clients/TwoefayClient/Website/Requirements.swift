/// The phones that a website takes.
public enum AcceptedPhones: String, Sendable, CaseIterable {
    /// Native apps and pages in a browser.
    case any
    case native
    /// Pages in a browser.
    case web
}

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

    /// The phones that the website takes. The links that it draws say so to the apps, and no other phone
    /// is pinned.
    public var phones = AcceptedPhones.any
    /// The origin of the web app that the website chose, such as `https://phone.example.com`; never one
    /// of the relay's host. The links then lead there, and pages of another origin are not pinned.
    public var appOrigin: String?
    /// The website's own origins, at which people enter their password. A page has the assurance `high`
    /// only if it comes from another host than these and the relay's. Without them it has
    /// `substantial` at most.
    public var loginOrigins: [String] = []

    /// Creates the strong form. Set what differs.
    public init() {}

    static let mostDigits = 6
}
