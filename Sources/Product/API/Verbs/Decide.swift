import Domain
import JSON
import Relay

/// Answer: `/success` and `/failure` from the phone or, in the original form, from the website;
/// `/backup`; and the unlocking of a user.
enum Decide {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/success", "Says yes",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.approve, call, phone) },
                [P.challenge.required, P.answer.optional, P.number.optional],
                answers: [
                    (200, "login: success, or failure after a wrong number"),
                    (409, "it has its end; login says which"), (429, "too soon after a wrong number"),
                ]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.approve, call, website) },
                [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isOriginal: true,
                answers: [(200, "login: success")])),
        Route(
            "POST", "/failure", "Says no",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.deny, call, phone) },
                [P.challenge.required, P.answer.optional, P.number.optional],
                answers: [(200, "login: failure"), (409, "it has its end; login says which")]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.deny, call, website) },
                [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isOriginal: true,
                answers: [(200, "login: failure")])),
        Route(
            "POST", "/backup", "Hands in a code that the user typed",
            Form(
                .website(backup), [P.challenge.optional, P.token.optional, P.anyCode.required],
                oneOf: ["challenge", "token"],
                answers: [
                    (200, "login: success or failure, and what /auth says"),
                    (409, "it has its end; login says which"), (403, "codes_locked: too many were wrong"),
                    (429, "too soon after a wrong code"),
                ])),
        Route(
            "POST", "/user/{username}/unlock", "Lets a user be asked again after wrong numbers, and reopens codes",
            Form(
                .website(unlock), [P.recoveryCode.optional, P.approval.optional, P.knownBrowser.optional],
                answers: [
                    (204, "the user can be asked, and codes are taken"),
                    (200, "unlocked: false, where a recovery code was given that is none: it counts"),
                    (403, "frozen after fraud, or locked by an operator, who lifts that"),
                    (403, "approval_required: codes are locked; challenge and number? of what the user is asked now"),
                    (403, "codes_locked: no recovery code is taken, or no phone may answer for this website"),
                ])),
    ]

    private static func decide(
        _ decision: Decision, _ call: VerbCall, _ phone: PhoneCredential
    ) async throws(Refusal) -> VerbOutcome {
        guard let challenge: ChallengeID = try call.id(P.challenge) else { throw .notFound }
        let answer = PhoneAnswer(
            approves: decision == .approve, signed: call[P.answer], number: call[P.number])
        let result = try await call.relay.answer(challenge, answer, by: phone)
        return .answer(APIResponse(200, ["login": .word(result)]))
    }

    private static func decide(
        _ decision: Decision, _ call: VerbCall, _ website: Website
    ) async throws(Refusal) -> VerbOutcome {
        let challenge: ChallengeID? = try call.id(P.challenge)
        let token: UserToken? = try call.id(P.token)
        let result = try await call.relay.answer(challenge, of: token, decision, by: website, as: call.operation)
        return .answer(APIResponse(200, ["login": .word(result)]))
    }

    @Sendable static func backup(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let challenge: ChallengeID? = try call.id(P.challenge)
        let token: UserToken? = try call.id(P.token)
        let told = try await call.relay.backup(
            challenge, of: token, code: try call.required(P.anyCode), by: website, as: call.operation)
        // The challenge may still be open. Then `login` reports that the code was wrong.
        return .answer(APIResponse(200, told.json(login: told.result == .success ? nil : "failure")))
    }

    @Sendable static func unlock(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let username = try call.place("username")
        guard FieldRule.username(username) == nil else { throw .notFound }
        guard let code = call[P.recoveryCode] else {
            try await call.relay.unlock(
                username: username, approval: call.approval, isKnown: call[P.knownBrowser] == true, by: website,
                as: call.operation)
            return .answer(.noContent)
        }
        let unlocked = try await call.relay.unlock(
            username: username, code: code, by: website, as: call.operation)
        return .answer(unlocked ? .noContent : APIResponse(200, ["unlocked": false]))
    }
}
