import HTTP
import HTTP2
import World

/// Apple's requests and answers, for one app.
struct APNsDialect: PushDialect {
    let topic: String

    var events: PushEvents { .apns }

    func endpoint(_ configured: PushEndpoint, for environment: APNsNotification.Environment?) -> PushEndpoint {
        configured.serving(environment)
    }

    func form(authority: String, authorization: String?) -> RequestForm {
        APNsRequest.form(topic: topic, authority: authority, authorization: authorization)
    }

    func answer(_ response: Response, at now: Timestamp) -> any PushAnswer { APNsAnswer(response) }
}

extension PushEvents {
    static let apns = PushEvents(
        connected: "apns.connected", disconnected: "apns.disconnected", answer: "apns.answer",
        refused: "apns.refused", credentialRefused: "apns.credential.refused",
        credentialAccepted: "apns.credential.accepted")
}

extension PushEndpoint {
    public static let production = PushEndpoint(host: "api.push.apple.com")
    public static let sandbox = PushEndpoint(host: "api.sandbox.push.apple.com")

    /// Returns the endpoint that serves the environment. Apple serves device tokens of apps from
    /// Xcode (the sandbox) on a separate host. Any other service takes both kinds.
    func serving(_ environment: APNsNotification.Environment?) -> PushEndpoint {
        guard environment == .sandbox, host == Self.production.host else { return self }
        return PushEndpoint(host: Self.sandbox.host, port: port)
    }
}
