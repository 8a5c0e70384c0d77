import Domain
import JSON
import Relay

/// Enrol: changes of bound phones. The website uses `/user/{username}/devices/{device}`, the phone
/// itself `/device`, and anybody with the revocation code `/revoke`.
enum Devices {
    typealias P = Parameters

    static let routes = [
        Route(
            "changeDevice", "PATCH", "/user/{username}/devices/{device}",
            "Renames, suspends, resumes or verifies a phone",
            Form(
                .website(change), [P.deviceName.optional, P.deviceSwitch.optional, P.deviceVerified.optional],
                oneOf: ["name", "state", "verified"],
                answers: [Answer(200, "The phone, as in the user", .device)],
                problems: [
                    .forbidden: "an operator suspended the phone",
                    .conflict: "the phone waits for approval, or is unbound",
                ])),
        Route(
            "unbindDevice", "DELETE", "/user/{username}/devices/{device}", "Unbinds a phone",
            Form(.website(unbind), answers: [Answer(204, "The phone is unbound, now or before")])),
        Route(
            "changeOwnDevice", "POST", "/device",
            "Changes the calling phone's device token or name, or renews its certificate",
            Form(
                .phone(changeOwn),
                [
                    P.signedPushToken.optional, P.deviceName.optional, P.renewal.optional,
                    P.certificateRequest.optional,
                ],
                oneOf: ["dev_token", "name", "certificate"],
                answers: [
                    Answer(
                        200, "The change is stored",
                        .object([
                            "device": .id,
                            "certificate?": .pem.about("The new certificate, valid for at most 90 days"),
                        ]))
                ],
                problems: [
                    .limited: "the phone has eight certificates that have not expired, and got one in the last week",
                    .unavailable: "an outside authority has not issued it yet; Retry-After has the pause",
                ])),
        Route(
            "unbindOwnDevice", "DELETE", "/device", "Unbinds the calling phone",
            Form(.phone(unbindOwn), answers: [Answer(204, "The phone is unbound")])),
        Route(
            "revokeDevice", "POST", "/revoke", "Unbinds the phone with this revocation code",
            Form(
                .anyone(revoke), [P.revocationCode.required],
                answers: [Answer(204, "No phone with this code is bound now")],
                problems: [
                    .invalid: "not in the form of a revocation code", .limited: "too many codes from this sender",
                ])),
    ]

    @Sendable static func change(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let (username, device) = try place(call)
        let view = try await call.relay.change(
            device, ofUser: username, name: call[P.deviceName], state: call[P.deviceSwitch],
            isVerified: call[P.deviceVerified] == true, by: website)
        let attestation = try await call.relay.attestation(of: device, at: website)
        let user = try await call.relay.user(named: username, of: website)
        let certificates = try await call.relay.taggedCertificates(of: user.id, at: website)[device] ?? []
        let page = try await call.relay.webPhones([view], of: user.id)[device]
        return .answer(APIResponse(200, try view.json(call, attestation, page, certificates)))
    }

    @Sendable static func unbind(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let (username, device) = try place(call)
        try await call.relay.unbind(device, ofUser: username, by: website)
        return .answer(.noContent)
    }

    private static func place(_ call: VerbCall) throws(Refusal) -> (username: String, device: DeviceID) {
        let username = try Enrol.username(call)
        guard let device = DeviceID(try call.place("device")) else { throw .notFound }
        return (username, device)
    }

    @Sendable static func changeOwn(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        let certificate = try await call.relay.change(
            pushToken: call[P.signedPushToken], name: call[P.deviceName], renews: call[P.renewal] == true,
            certificateRequest: call[P.certificateRequest], by: phone)
        var body: JSONObject = ["device": .string(phone.id.text)]
        if let certificate { body.set("certificate", .string(certificate)) }
        return .answer(APIResponse(200, body))
    }

    @Sendable static func unbindOwn(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        try await call.relay.unbind(by: phone)
        return .answer(.noContent)
    }

    @Sendable static func revoke(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        try await call.relay.revoke(code: try call.required(P.revocationCode), from: call.remote)
        return .answer(.noContent)
    }
}
