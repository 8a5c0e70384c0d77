import Domain
import JSON
import QR
import Relay

/// Enrol: `/register`, `/user/{username}` and `/verify`.
enum Enrol {
    typealias P = Parameters

    static let routes = [
        Route(
            "register", "POST", "/register", "Registers a user and creates the activation of the first phone",
            Form(
                .website(register),
                [
                    P.username.required, P.email.optional, P.phone.optional, P.displayName.optional,
                    P.language.optional, P.expiresAt.optional,
                ],
                answers: [
                    Answer(
                        201, "The user is registered", .object(["token": .id, "activation": .firstActivation]))
                ],
                problems: [
                    .conflict: "the user exists, or another user of this website has the address or number",
                    .shownOnce: shownOnce,
                    .limited: "the website has too many users, or registers too many in a minute",
                ])),
        Route(
            "showUser", "GET", "/user/{username}", "Returns a user",
            Form(.website(show), answers: [Answer(200, "The user", .user)])),
        Route(
            "deleteUser", "DELETE", "/user/{username}", "Deletes a user",
            Form(.website(forget), answers: [Answer(204, "The user is deleted")])),
        Route(
            "createActivation", "POST", "/user/{username}/activation",
            "Creates the activation of a phone, or mails it anew",
            Form(
                .website(activate), [P.approval.optional],
                answers: [
                    Answer(201, "The activation, which is shown only once", .activation),
                    Answer(202, "The relay mails the code, and earlier codes are void", .mailedActivation),
                ],
                problems: [
                    .approvalRequired: "the user has to approve a further phone first",
                    .forbidden: "the user is barred, the identity is not confirmed, or the approval is void",
                    .conflict: "the user has no mail address, or the relay has no mail server",
                    .shownOnce: shownOnce, .limited: "too many codes were mailed to this user",
                ])),
        Route(
            "bindPhone", "POST", "/verify", "Binds a phone",
            Form(
                .anyone(verify),
                [
                    P.idToken.required, P.ownPushToken.optional, P.activationCode.required, P.proof.required,
                    P.attestation.optional, P.certificateRequest.optional, P.binding.optional,
                    P.deviceName.optional, P.platform.optional,
                    P.environment.optional,
                ],
                answers: [Answer(200, "The phone is bound, or waits for the user's approval", .boundDevice)],
                problems: [
                    .unauthenticated: "token, code or proof is wrong, or the user has refused",
                    .notAttested: "the website binds only attested phones; fault. The code stays valid",
                    .conflict: "the user has as many phones as the policy allows",
                    .limited: "too many wrong codes from this sender",
                ]),
            Form(
                .website(verifyByWebsite), [P.idToken.required, P.pushToken.required], isOriginal: true,
                answers: [],
                problems: [
                    .forbidden: "an operator suspended or unbound the phone", .notFound: "there is no such user",
                ])),
    ]

    static let shownOnce = "the answer to the first request with this Idempotency-Key held a secret"

    @Sendable static func register(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let registration = Registration(
            username: try call.required(P.username), email: call[P.email], phone: call[P.phone],
            displayName: call[P.displayName], language: call[P.language], expiresAt: call[P.expiresAt])
        let (token, activation) = try await call.relay.register(registration, by: website, as: call.operation)
        return .secret(["token": .string(token.text), "activation": .object(try await activation.json(call))])
    }

    @Sendable static func activate(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let username = try username(call)
        let activation = try await call.relay.activate(
            username: username, approval: call.approval, by: website, as: call.operation)
        let body = try await activation.json(call)
        return activation.shown == nil ? .answer(APIResponse(202, body)) : .secret(body)
    }

    @Sendable static func show(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let (user, devices, factors) = try await call.relay.show(try username(call), of: website)
        let codes = factors.map { JSONValue.object($0.json(of: user, from: call.relay)) }
        let views = devices.isEmpty ? [] : try await views(of: devices, of: user, call, website)
        var body: JSONObject = [
            "token": .string(user.token.text), "email": .text(user.email), "phone": .text(user.phone),
            "state": .word(user.state),
        ]
        if user.state != .active, let doer = user.stoppedBy { body.set("stopped_by", .word(doer)) }
        body.set("expires_at", .timestamp(user.expiresAt))
        body.set("codes", user.codes.isLocked ? "locked" : "open")
        body.set(missing: user.enrolment(factors).missing(under: website.policy))
        body.set("last_code_at", .timestamp(factors.compactMap(\.lastCodeAt).max()))
        body.set("factors", .array(pushed(devices, of: user, by: call.relay) + codes))
        body.set("devices", .array(views))
        return .answer(APIResponse(200, body))
    }

    private static func views(
        of devices: [DeviceView], of user: UserRow, _ call: VerbCall, _ website: Website
    ) async throws(Refusal) -> [JSONValue] {
        let attestations = try await call.relay.attestations(of: user.id, at: website)
        let pages = try await call.relay.webPhones(devices, of: user.id)
        let certificates = try await call.relay.taggedCertificates(of: user.id, at: website)
        var views: [JSONValue] = []
        for device in devices {
            let shown = try device.json(
                call, attestations[device.id], pages[device.id], certificates[device.id] ?? [])
            views.append(.object(shown))
        }
        return views
    }

    @Sendable static func forget(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        try await call.relay.forget(username: try username(call), by: website)
        return .answer(.noContent)
    }

    @Sendable static func verify(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        // The answer must not reveal which value was wrong, so a malformed token is replaced by a
        // random one that cannot match.
        let token = UserToken(try call.required(P.idToken)) ?? call.relay.operations.draw()
        var request = BindRequest(
            token: token, pushToken: call[P.ownPushToken] ?? "",
            activationCode: try call.required(P.activationCode), proof: try call.required(P.proof),
            binding: call[P.binding], name: call[P.deviceName], platform: call[P.platform] ?? .other,
            environment: call[P.environment] ?? .production)
        request.attestation = call[P.attestation]
        request.certificateRequest = call[P.certificateRequest]
        request.languages = call.operation.languages.unproved
        let binding = try await call.relay.bind(request, from: call.remote)
        return .answer(APIResponse(200, binding.json))
    }

    @Sendable static func verifyByWebsite(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        guard let token: UserToken = try call.id(P.idToken) else { throw .notFound }
        _ = try await call.relay.bind(
            token: token, pushToken: try call.required(P.pushToken), by: website, as: call.operation)
        return .answer(APIResponse(200, ["login": "verified"]))
    }

    /// The username in the path. A name that no user can have is not found.
    static func username(_ call: VerbCall) throws(Refusal) -> String {
        let username = try call.place("username")
        guard FieldRule.username(username) == nil else { throw .notFound }
        return username
    }

    /// The factor of the user's phones, push or pull, with the best state of the phones. If the
    /// user is not active, the user's state is shown instead. The list is empty if no phone is
    /// active, suspended or waiting.
    private static func pushed(_ devices: [DeviceView], of user: UserRow, by relay: Relay) -> [JSONValue] {
        let states = devices.map(\.state)
        guard let best = [DeviceState.active, .suspended, .waiting].first(where: states.contains) else { return [] }
        let state: JSONValue = user.state == .active ? .word(best) : .word(user.state)
        // A phone that polls is as good as a pushed one for its user, but it gets no notification.
        let isPushed = relay.arePushed(devices.filter { $0.state == best })
        return [.object(["kind": .word(isPushed ? Factor.push : .pull), "state": state])]
    }
}

extension VerbOutcome {
    /// An answer 201 with a secret that is shown once.
    static func secret(_ body: JSONObject) -> VerbOutcome {
        var answer = APIResponse(201, body)
        answer.holdsSecret = true
        return .answer(answer)
    }
}
