import HTTP
import JSON
import World

/// FCM's answer to a push (HTTP v1).
struct FCMAnswer: PushAnswer, Equatable {
    let status: Int
    /// The `errorCode` of FCM, such as `UNREGISTERED`; otherwise the status of Google's interfaces,
    /// such as `UNAUTHENTICATED`.
    let reason: String?
    /// The value of `Retry-After` in seconds, if the answer has it.
    let retryAfter: Int?
    /// Whether the answer says that the registration token is none.
    let namesToken: Bool

    init(status: Int, reason: String? = nil, retryAfter: Int? = nil, namesToken: Bool = false) {
        self.status = status
        self.reason = reason
        self.retryAfter = retryAfter
        self.namesToken = namesToken
    }

    /// Reads the answer from a response. If the body is unreadable, the status alone counts.
    init(_ response: Response, at now: Timestamp) {
        guard response.status != 200 else {
            self.init(status: 200)
            return
        }
        let error = (try? JSONReader.read(response.body))?.object?["error"]?.object
        let details = error?["details"]?.array?.compactMap(\.object) ?? []
        let code = details.lazy.compactMap { $0["errorCode"]?.string }.first ?? error?["status"]?.string
        let pause = response.fields["retry-after"].flatMap { RetryAfter.wait($0, at: now) }
        self.init(
            status: response.status, reason: code.flatMap(ServiceText.readable),
            retryAfter: pause.map { Int(clamping: $0.components.seconds) },
            namesToken: Self.namesToken(details, error?["message"]?.string ?? ""))
    }

    /// INVALID_ARGUMENT is the answer to a bad token and to a bad request. The details name the
    /// fields at fault. If there are none, only the sentence for people shows the difference.
    private static func namesToken(_ details: [JSONObject], _ message: String) -> Bool {
        let fields = details.flatMap { $0["fieldViolations"]?.array ?? [] }.compactMap { $0.object?["field"]?.string }
        guard fields.isEmpty else { return fields.contains("message.token") }
        return message.contains("not a valid FCM registration token")
    }

    /// FCM reports no time since which a token is dead.
    var timestamp: Timestamp? { nil }
}

extension FCMAnswer {
    /// The names that FCM documents, and those of Google's interfaces that reach a sender.
    static let reasons: Set<String> = [
        "INVALID_ARGUMENT", "UNREGISTERED", "SENDER_ID_MISMATCH", "QUOTA_EXCEEDED", "UNAVAILABLE", "INTERNAL",
        "THIRD_PARTY_AUTH_ERROR", "UNSPECIFIED_ERROR", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND",
        "RESOURCE_EXHAUSTED",
    ]

    var label: String {
        if status == 200 { return "Success" }
        guard let reason, Self.reasons.contains(reason) else { return "Other" }
        return reason
    }

    var meaning: AnswerMeaning {
        switch (status, reason) {
        case (200, _): .accepted
        case (400, _): namesToken ? .badToken : .ourMistake
        // The token is of an app for which the project has no credential of Apple or of Web Push.
        case (401, "THIRD_PARTY_AUTH_ERROR"), (403, "SENDER_ID_MISMATCH"): .foreignProject
        case (401, _): .expiredAccessToken
        case (403, _): .refusedCredential
        // Without the code, 404 can also mean a wrong project: the token is kept.
        case (404, "UNREGISTERED"): .goneToken
        case (429, _): .exceededQuota
        case (500..., _): .unavailable
        default: .ourMistake
        }
    }
}
