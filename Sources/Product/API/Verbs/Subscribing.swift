import JSON
import Relay

/// What a browser has to know before it can be a phone that is pushed.
enum Subscribing {
    static let routes = [
        Route(
            "GET", "/push", "What browsers subscribe to pushes with",
            Form(.anyone(show), answers: [(200, "web: {application_server_key}, where browsers are pushed")]))
    ]

    @Sendable static func show(_ call: Call) async throws(Refusal) -> Verdict {
        var services = JSONObject()
        if let key = call.api.settings.applicationServerKey {
            services["web"] = ["application_server_key": .string(key)]
        }
        return .answer(Answer(200, services))
    }
}
