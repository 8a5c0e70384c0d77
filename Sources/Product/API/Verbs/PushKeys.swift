import JSON
import Relay

/// What a browser has to know before it can be a phone that is pushed.
enum PushKeys {
    static let routes = [
        Route(
            "GET", "/push", "What browsers subscribe to pushes with",
            Form(.anyone(show), answers: [(200, "web: {application_server_key}, where browsers are pushed")]))
    ]

    @Sendable static func show(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        var services = JSONObject()
        if let key = call.api.settings.applicationServerKey {
            services["web"] = ["application_server_key": .string(key)]
        }
        return .answer(APIResponse(200, services))
    }
}
