import Bytes
import Domain
import JSON
import Relay

/// Notify: the secrets with which a website verifies its webhooks.
enum WebhookSecrets {
    static let routes = [
        Route(
            "showWebhookSecrets", "GET", "/webhook/secrets",
            "Returns the secrets of the website's webhooks, the newest first",
            Form(
                .website(fetch),
                answers: [
                    Answer(
                        200, "The secrets",
                        .object([
                            "secrets": .list(of: .object(["secret": .text("whsec_…"), "until?": .time])),
                            "made_at": .time, "next_at": .time.orNull,
                        ]))
                ],
                problems: [.notFound: "the website has no webhooks"]))
    ]

    @Sendable private static func fetch(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let fetched = try await call.relay.webhookSecrets(for: website)
        var secrets: [JSONValue] = [.object(["secret": text(fetched.current)])]
        if let former = fetched.former {
            secrets.append(.object(["secret": text(former.secret), "until": .timestamp(former.until)]))
        }
        return .answer(
            APIResponse(
                200,
                [
                    "secrets": .array(secrets), "made_at": .timestamp(fetched.madeAt),
                    "next_at": .timestamp(fetched.nextAt),
                ]))
    }

    private static func text(_ secret: Secret) -> JSONValue {
        .string(String(decoding: secret.reveal(), as: UTF8.self))
    }
}
