import World

/// An answer of a push service.
protocol PushAnswer {
    var status: Int { get }
    /// The service's name for the refusal; nil if there is none, or if it is not readable.
    var reason: String? { get }
    /// The time since which the device token is known to be dead.
    var timestamp: Timestamp? { get }
    /// The pause that the service asks for, in seconds.
    var retryAfter: Int? { get }
    /// The label for metrics, from a fixed set of values whatever the service sends.
    var label: String { get }
    var meaning: AnswerMeaning { get }
}

extension PushAnswer {
    /// The text for the log and for the outcome of the push.
    var text: String { reason ?? "\(status)" }
}

/// The class of an answer, the same for all services. Everything that the relay does about an answer
/// follows from its class.
enum AnswerMeaning: Hashable {
    case accepted
    /// The device token does not belong to this environment, or is none.
    case badToken
    /// The device token belongs to another app.
    case foreignToken
    /// The device token belongs to another project, or needs a credential that the project lacks.
    case foreignProject
    /// The app was removed from the phone, or the device token has expired.
    case goneToken
    case ourMistake
    case idleConnection
    /// The service does not accept the relay's credential.
    case refusedCredential
    case expiredCredential
    /// The access token has expired or was withdrawn; the connection is not bound to it.
    case expiredAccessToken
    /// The connection was first used with another key.
    case unrelatedKey
    case busyDevice
    case tooManyRenewals
    /// The server has a fault or shuts down: another server is likely to work.
    case serverTrouble
    /// The project has sent too many pushes.
    case exceededQuota
    /// The whole service has a fault, and asks for growing pauses.
    case unavailable

    /// Whether the service gives this answer only to a client whose credential it accepts.
    var provesCredential: Bool {
        switch self {
        case .accepted, .badToken, .foreignToken, .foreignProject, .goneToken, .busyDevice, .exceededQuota: true
        case .ourMistake, .idleConnection, .refusedCredential, .expiredCredential, .expiredAccessToken,
            .unrelatedKey, .tooManyRenewals, .serverTrouble, .unavailable:
            false
        }
    }
}

/// Texts from a service that reach logs and callers.
enum ServiceText {
    /// Returns the text if it looks like a service's name for a refusal, else nil.
    static func readable(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
        return isPlain && (1...64).contains(text.utf8.count) ? text : nil
    }
}
