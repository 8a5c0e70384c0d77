/// The languages that a request asks for, each as a language tag or a whole Accept-Language value.
public struct RequestedLanguages: Sendable, Equatable {
    /// The person's own choice.
    public let chosen: String?
    /// The preference of the browser or the system.
    public let accepted: String?

    public init(chosen: String? = nil, accepted: String? = nil) {
        self.chosen = chosen
        self.accepted = accepted
    }

    public static let none = RequestedLanguages()

    /// Returns the language of messages to a user: the person's choice of now, or else the language
    /// that the website stored for the user, or else what the browser prefers.
    public func message(stored: String?) -> String? { chosen ?? stored ?? accepted }
}
