import Domain
import JSON
import Relay

/// Answer: `/success` and `/failure` from the phone or, in the original form, from the website;
/// `/backup`; and the unlocking of a user.
enum Decide {
    typealias P = Parameters

    static let routes = [
        Route(
            "approve", "POST", "/success", "Approves a challenge",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.approve, call, phone) },
                [
                    P.challenge.required, P.answer.optional, P.number.optional, P.assertion.optional,
                    P.ownerAssertion.optional, P.pinSignature.optional,
                ],
                answers: [Answer(200, "The result: a wrong number is a failure", .decided)],
                problems: [
                    .notFound: notFound, .forbidden: "the policy accepts no approval of this form",
                    .postureUnmet: "the phone does not meet the demands in unmet",
                    .pinRequired: "the phone has no PIN, or the answer has no pin_signature",
                    .pinWrong: "the PIN was wrong; tries_left", .pinLocked: "the PIN is locked",
                    .alreadyDecided: decided, .limited: "too soon after a wrong number",
                ]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.approve, call, website) },
                [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isOriginal: true,
                answers: [])),
        Route(
            "deny", "POST", "/failure", "Denies a challenge",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.deny, call, phone) },
                [
                    P.challenge.required, P.answer.optional, P.number.optional, P.assertion.optional,
                    P.ownerAssertion.optional, P.pinSignature.optional,
                ],
                answers: [Answer(200, "The result", .decided)],
                problems: [.notFound: notFound, .alreadyDecided: decided]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.deny, call, website) },
                [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isOriginal: true,
                answers: [])),
        Route(
            "enterCode", "POST", "/backup", "Submits a code that the user typed",
            Form(
                .website(backup), [P.challenge.optional, P.token.optional, P.anyCode.required],
                oneOf: ["challenge", "token"],
                answers: [Answer(200, "The result; after a wrong code login is failure", .loginResult)],
                problems: [
                    .notFound: notFound, .codesLocked: "too many codes of the user were wrong",
                    .forbidden: "token alone, and the policy is not answers: website",
                    .conflict: "token is of another user than challenge",
                    .alreadyDecided: decided, .limited: "too soon after a wrong code",
                ])),
        Route(
            "unlockUser", "POST", "/user/{username}/unlock",
            "Unlocks a user after wrong numbers, and unlocks the user's codes",
            Form(
                .website(unlock), [P.recoveryCode.optional, P.approval.optional, P.knownBrowser.optional],
                answers: [
                    Answer(204, "The user and the user's codes are unlocked"),
                    Answer(
                        200, "The recovery code was wrong, which counts as a failure",
                        .object(["unlocked": Shape.flag.showing(false)])),
                ],
                problems: [
                    .forbidden: "frozen after fraud (a recovery code lifts that), or locked by an operator",
                    .forbidden: "disabled: the user has left the operator's directory",
                    .approvalRequired: "codes are locked; the challenge, and number?, of the approval",
                    .codesLocked: "no recovery code is accepted, or no phone may answer for this website",
                    .limited: "too soon after a wrong code",
                ])),
    ]

    private static let notFound = "there is no such challenge, or it is for another caller"
    private static let decided = "the challenge has ended; login has its result"

    private static func decide(
        _ decision: Decision, _ call: VerbCall, _ phone: PhoneCredential
    ) async throws(Refusal) -> VerbOutcome {
        guard let challenge: ChallengeID = try call.id(P.challenge) else { throw .notFound }
        let answer = PhoneAnswer(
            approves: decision == .approve, signed: call[P.answer], number: call[P.number],
            assertion: call[P.assertion], pinSignature: call[P.pinSignature],
            ownerAssertion: call[P.ownerAssertion])
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
