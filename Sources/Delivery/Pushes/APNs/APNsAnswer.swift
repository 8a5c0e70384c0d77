import HTTP
import JSON
import World

/// Apple's answer to a push.
struct APNsAnswer: Equatable, PushAnswer {
    let status: Int
    let reason: String?
    /// The time since which the token is known to be dead; only with 410.
    let timestamp: Timestamp?
    /// The value of `Retry-After` in seconds, if the answer has it.
    let retryAfter: Int?

    init(status: Int, reason: String? = nil, timestamp: Timestamp? = nil, retryAfter: Int? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.retryAfter = retryAfter
    }

    /// Reads the answer from a response. If the body is unreadable, the status alone counts.
    init(_ response: Response) {
        guard response.status != 200 else {
            self.init(status: 200)
            return
        }
        let body = try? JSONReader.read(response.body).object
        self.init(
            status: response.status, reason: body?["reason"]?.string.flatMap(ServiceText.readable),
            timestamp: body?["timestamp"]?.integer.map { Timestamp(milliseconds: $0) },
            retryAfter: response.fields["retry-after"].flatMap { Int($0) })
    }
}

extension APNsAnswer {
    /// Apple's reasons for a refusal. Apple may add others.
    static let reasons: Set<String> = [
        "BadCertificate", "BadCertificateEnvironment", "BadCollapseId", "BadDeviceToken",
        "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadExpirationDate", "BadMessageId", "BadPath",
        "BadPriority", "BadTopic", "DeviceTokenNotForTopic", "DuplicateHeaders", "ExpiredProviderToken",
        "ExpiredToken", "Forbidden", "IdleTimeout", "InternalServerError", "InvalidProviderToken",
        "InvalidPushType", "MethodNotAllowed", "MissingDeviceToken", "MissingProviderToken", "MissingTopic",
        "PayloadEmpty", "PayloadTooLarge", "ServiceUnavailable", "Shutdown", "TooManyProviderTokenUpdates",
        "TooManyRequests", "TopicDisallowed", "Unregistered", "UnrelatedKeyIdInToken",
    ]

    /// The label for metrics, from a fixed set of values whatever the service sends.
    var label: String {
        if status == 200 { return "Success" }
        guard let reason, Self.reasons.contains(reason) else { return "Other" }
        return reason
    }

    var meaning: AnswerMeaning {
        switch (status, reason) {
        case (200, _): .accepted
        case (400, "BadDeviceToken"): .badToken
        case (400, "DeviceTokenNotForTopic"): .foreignToken
        case (400, "IdleTimeout"): .idleConnection
        case (400, "TopicDisallowed"): .refusedCredential
        case (403, "ExpiredProviderToken"): .expiredCredential
        case (403, "UnrelatedKeyIdInToken"): .unrelatedKey
        case (429, "TooManyProviderTokenUpdates"): .tooManyRenewals
        // For all other reasons, including future ones, the status alone decides.
        case (403, _): .refusedCredential
        case (410, _): .goneToken
        case (429, _): .busyDevice
        case (500..., _): .serverTrouble
        default: .ourMistake
        }
    }
}
