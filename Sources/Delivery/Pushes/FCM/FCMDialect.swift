import HTTP
import HTTP2
import World

/// FCM's requests and answers (HTTP v1).
struct FCMDialect: PushDialect {
    var events: PushEvents { .fcm }

    func endpoint(_ configured: PushEndpoint, for environment: APNsNotification.Environment?) -> PushEndpoint {
        configured
    }

    func form(authority: String, authorization: String?) -> RequestForm {
        var fields = Fields()
        fields.add("content-type", "application/json")
        if let authorization { fields.add("authorization", authorization) }
        return RequestForm(method: "POST", authority: authority, fields: fields)
    }

    func answer(_ response: Response, at now: Timestamp) -> any PushAnswer { FCMAnswer(response, at: now) }
}

extension PushEvents {
    static let fcm = PushEvents(
        connected: "fcm.connected", disconnected: "fcm.disconnected", answer: "fcm.answer", refused: "fcm.refused",
        credentialRefused: "fcm.credential.refused", credentialAccepted: "fcm.credential.accepted")
}

extension PushEndpoint {
    public static let fcm = PushEndpoint(host: "fcm.googleapis.com")
}
