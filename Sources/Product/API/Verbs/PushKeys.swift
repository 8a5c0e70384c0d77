import JSON
import Relay

/// The keys that a browser needs before it can receive pushes as a phone.
enum PushKeys {
    static let routes = [
        Route(
            "showPushKeys", "GET", "/push", "Returns the key with which browsers subscribe to pushes",
            Form(
                .anyone(show),
                answers: [
                    Answer(
                        200, "The keys",
                        .object([
                            "web?": .object(["application_server_key": .text("BNcR…")]).about(
                                "Only if the relay pushes to browsers")
                        ]))
                ]))
    ]

    @Sendable static func show(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        var services = JSONObject()
        if let key = call.api.settings.applicationServerKey {
            services["web"] = ["application_server_key": .string(key)]
        }
        return .answer(APIResponse(200, services))
    }
}
