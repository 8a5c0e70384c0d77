import HTTP
import JSON
import World

/// What Apple said.
struct APNsAnswer: Equatable {
    let status: Int
    let reason: String?
    /// With 410: since when the token is known to be dead.
    let timestamp: Timestamp?
    /// In seconds, if the answer names it.
    let retryAfter: Int?

    init(status: Int, reason: String? = nil, timestamp: Timestamp? = nil, retryAfter: Int? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.retryAfter = retryAfter
    }

    /// An unreadable body leaves the status, which then says enough.
    init(_ response: Response) {
        guard response.status != 200 else {
            self.init(status: 200)
            return
        }
        let body = try? JSONReader.read(response.body).object
        self.init(
            status: response.status, reason: body?["reason"]?.string.flatMap(Self.readable),
            timestamp: body?["timestamp"]?.integer.map { Timestamp(milliseconds: $0) },
            retryAfter: response.fields["retry-after"].flatMap { Int($0) })
    }

    /// What the service says goes far from here: only a word that looks like one of Apple's.
    private static func readable(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
        return isPlain && (1...64).contains(text.utf8.count) ? text : nil
    }

    /// For the log and for whoever asks what became of the push.
    var text: String { reason ?? "\(status)" }
}

extension APNsAnswer {
    /// Apple's own words for what it refuses. Others may come.
    static let reasons: Set<String> = [
        "BadCertificate", "BadCertificateEnvironment", "BadCollapseId", "BadDeviceToken",
        "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadExpirationDate", "BadMessageId", "BadPath",
        "BadPriority", "BadTopic", "DeviceTokenNotForTopic", "DuplicateHeaders", "ExpiredProviderToken",
        "ExpiredToken", "Forbidden", "IdleTimeout", "InternalServerError", "InvalidProviderToken",
        "InvalidPushType", "MethodNotAllowed", "MissingDeviceToken", "MissingProviderToken", "MissingTopic",
        "PayloadEmpty", "PayloadTooLarge", "ServiceUnavailable", "Shutdown", "TooManyProviderTokenUpdates",
        "TooManyRequests", "TopicDisallowed", "Unregistered", "UnrelatedKeyIdInToken",
    ]

    /// One of few, whatever the service says.
    var label: String {
        if status == 200 { return "Success" }
        guard let reason, Self.reasons.contains(reason) else { return "Other" }
        return reason
    }

    /// The classes of Apple's answers: all that is done about one follows from its class.
    enum Meaning: Hashable {
        case accepted
        /// No token of this environment.
        case badToken
        /// A token of another app.
        case foreignToken
        /// The app is gone from the phone, or the token has run out.
        case goneToken
        case ourMistake
        case idleConnection
        /// Our key or certificate is not taken.
        case refusedCredential
        case expiredCredential
        /// The connection belongs to another key.
        case unrelatedKey
        case busyDevice
        case tooManyRenewals
        /// Of the server, or its leaving: another one is likely to do better.
        case serverTrouble
    }

    var meaning: Meaning {
        switch (status, reason) {
        case (200, _): .accepted
        case (400, "BadDeviceToken"): .badToken
        case (400, "DeviceTokenNotForTopic"): .foreignToken
        case (400, "IdleTimeout"): .idleConnection
        case (400, "TopicDisallowed"): .refusedCredential
        case (403, "ExpiredProviderToken"): .expiredCredential
        case (403, "UnrelatedKeyIdInToken"): .unrelatedKey
        case (429, "TooManyProviderTokenUpdates"): .tooManyRenewals
        // From here on the status alone counts, for reasons that Apple may add as well.
        case (403, _): .refusedCredential
        case (410, _): .goneToken
        case (429, _): .busyDevice
        case (500..., _): .serverTrouble
        default: .ourMistake
        }
    }
}
