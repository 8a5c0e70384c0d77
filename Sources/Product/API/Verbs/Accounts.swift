import Bytes
import Domain
import JSON
import Relay

/// Notify: what a person sees of their own account, by a phone or by the link of a mail.
enum Accounts {
    typealias P = Parameters

    private static let wrong = "the link is wrong, has expired, or no longer counts"
    private static let often = "this address asked too often"

    static let routes = [
        Route(
            "showAccount", "GET", "/account", "Returns the account of the phone's user",
            Form(
                .phone(show), answers: [Answer(200, "The account", .account)],
                problems: [.limited: "the phone asked more than ten times in a minute"])),
        Route(
            "openAccount", "POST", "/account", "Returns the account of the user who got this link by mail",
            Form(
                .anyone(open), [P.accountLink.required],
                answers: [Answer(200, "The account, without `this` and `report`", .account)],
                problems: [.unauthenticated: wrong, .limited: often])),
        Route(
            "reportLogin", "POST", "/account/report", "Reports a login as fraud by the link of a mail",
            Form(
                .anyone(report), [P.accountLink.required, P.challenge.required],
                answers: [Answer(204, "The user is frozen")],
                problems: [
                    .unauthenticated: wrong, .limited: often, .notFound: "the user has no such login",
                    .conflict: "the login was reported before, or has been over for a day",
                ])),
    ]

    @Sendable private static func show(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome
    {
        let account = try await call.relay.account(for: phone)
        return .answer(APIResponse(200, account.json(call, for: phone.id)))
    }

    @Sendable private static func open(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        let account = try await call.relay.account(link: try call.required(P.accountLink), from: call.remote)
        return .answer(APIResponse(200, account.json(call, for: nil)))
    }

    @Sendable private static func report(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        guard let challenge: ChallengeID = try call.id(P.challenge) else { throw .notFound }
        try await call.relay.reportFraud(challenge, link: try call.required(P.accountLink), from: call.remote)
        return .answer(.noContent)
    }
}

extension Account {
    /// - Parameter phone: the calling phone; nil for a link.
    fileprivate func json(_ call: VerbCall, for phone: DeviceID?) -> JSONObject {
        [
            "username": .string(holder.user.username), "website": .string(holder.website.name),
            "display_name": .string(holder.website.displayName),
            "devices": .array(devices.map { .object($0.shown(to: phone)) }),
            // A temporary code is the help desk's, and has another mail.
            "factors": .array(
                factors.filter { $0.kind != .operator }.map { .object(json(of: $0, from: call.relay)) }),
            "logins": .array(logins.map { .object($0.json(for: phone)) }),
        ]
    }

    private func json(of factor: CodeFactor, from relay: Relay) -> JSONObject {
        let whole = factor.json(of: holder.user, from: relay)
        var object: JSONObject = [:]
        for name in ["kind", "state", "created_at", "address"] { object.set(name, whole[name]) }
        if factor.kind == .recovery { object.set("left", .integer(Int64(unusedCodes[factor.id] ?? 0))) }
        return object
    }
}

extension DeviceView {
    fileprivate func shown(to phone: DeviceID?) -> JSONObject {
        var object: JSONObject = ["device": .string(id.text)]
        if let name { object.set("name", .string(name)) }
        object.set("platform", .word(platform))
        object.set("state", .word(state))
        object.set("created_at", .timestamp(createdAt))
        if let lastSeenAt { object.set("last_seen_at", .timestamp(lastSeenAt)) }
        if id == phone { object.set("this", true) }
        return object
    }
}

extension Account.Login {
    fileprivate func json(for phone: DeviceID?) -> JSONObject {
        var object: JSONObject = [
            "challenge": .string(login.challenge.text), "created_at": .timestamp(login.askedAt),
        ]
        if let endedAt { object.set("ended_at", .timestamp(endedAt)) }
        object.set("login", .string(life.result.rawValue))
        if let reason = life.reason { object.set("reason", .word(reason)) }
        if let factor = login.factor { object.set("factor", .word(factor)) }
        if let device = login.device { object.set("device", .string(device.text)) }
        let shown = login.context.flatMap { (try? JSONReader.read($0))?.object }
        for name in ["service", "action", "ip", "place", "user_agent"] { object.set(name, shown?[name]) }
        guard canBeReported else { return object }
        if phone == nil {
            object.set("can_report", true)
        } else if let context = login.context {
            object.set(
                "report",
                [
                    "nonce": .string(Base64URL.encode(login.nonce)), "context": .string(Base64URL.encode(context)),
                ])
        }
        return object
    }
}
