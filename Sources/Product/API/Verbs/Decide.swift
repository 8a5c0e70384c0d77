import Domain
import JSON
import Relay

/// Answer: `/success` and `/failure` from the phone or, in the original form, from the website;
/// `/backup`; and the unlocking of a user.
enum Decide {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/success", "Approves a challenge",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.approve, call, phone) },
                [
                    P.challenge.required, P.answer.optional, P.number.optional, P.assertion.optional,
                    P.pinSignature.optional,
                ],
                answers: [
                    (200, "login: success, or failure after a wrong number"),
                    (403, "posture_unmet: unmet, the demands that the phone does not meet"),
                    (403, "pin_required: the phone has no PIN, or the answer has no pin_signature"),
                    (403, "pin_wrong: the PIN was wrong; tries_left"), (403, "pin_locked: the PIN is locked"),
                    (409, "the challenge has ended; login has its result"), (429, "too soon after a wrong number"),
                ]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.approve, call, website) },
                [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isOriginal: true,
                answers: [(200, "login: success")])),
        Route(
            "POST", "/failure", "Denies a challenge",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.deny, call, phone) },
                [
                    P.challenge.required, P.answer.optional, P.number.optional, P.assertion.optional,
                    P.pinSignature.optional,
                ],
                answers: [(200, "login: failure"), (409, "the challenge has ended; login has its result")]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.deny, call, website) },
                [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isOriginal: true,
                answers: [(200, "login: failure")])),
        Route(
            "POST", "/backup", "Submits a code that the user typed",
            Form(
                .website(backup), [P.challenge.optional, P.token.optional, P.anyCode.required],
                oneOf: ["challenge", "token"],
                answers: [
                    (200, "login: success or failure, with the members of /auth"),
                    (409, "the challenge has ended; login has its result"), (403, "codes_locked: too many wrong codes"),
                    (429, "too soon after a wrong code"),
                ])),
        Route(
            "POST", "/user/{username}/unlock", "Unlocks a user after wrong numbers, and unlocks the user's codes",
            Form(
                .website(unlock), [P.recoveryCode.optional, P.approval.optional, P.knownBrowser.optional],
                answers: [
                    (204, "the user and the user's codes are unlocked"),
                    (200, "unlocked: false, for a wrong recovery code, which counts as a failure"),
                    (403, "frozen after fraud (a recovery code lifts that), or locked by an operator"),
                    (403, "disabled: the user has left the operator's directory"),
                    (403, "approval_required: codes are locked; the challenge, and number?, of the approval"),
                    (403, "codes_locked: no recovery code is accepted, or no phone may answer for this website"),
                ])),
    ]

    private static func decide(
        _ decision: Decision, _ call: VerbCall, _ phone: PhoneCredential
    ) async throws(Refusal) -> VerbOutcome {
        guard let challenge: ChallengeID = try call.id(P.challenge) else { throw .notFound }
        let answer = PhoneAnswer(
            approves: decision == .approve, signed: call[P.answer], number: call[P.number],
            assertion: call[P.assertion], pinSignature: call[P.pinSignature])
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
