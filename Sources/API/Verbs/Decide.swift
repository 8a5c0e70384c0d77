import Domain
import JSON
import Relay

/// Answer: /success and /failure, from the phone or in the original's form from the website, and /backup.
enum Decide {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/success", "Says yes",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.approve, call, phone) },
                [P.challenge.required, P.number.optional], answers: [(200, "login: success or failure")]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.approve, call, website) },
                [P.token.required], isOriginal: true, answers: [(200, "login: success")])),
        Route(
            "POST", "/failure", "Says no",
            Form(
                .phone { call, phone async throws(Refusal) in try await decide(.deny, call, phone) },
                [P.challenge.required, P.number.optional], answers: [(200, "login: failure")]),
            Form(
                .website { call, website async throws(Refusal) in try await decide(.deny, call, website) },
                [P.token.required], isOriginal: true, answers: [(200, "login: failure")])),
        Route(
            "POST", "/backup", "Hands in a code that the user typed",
            Form(
                .website(backup), [P.challenge.optional, P.token.optional, P.otp.required],
                oneOf: ["challenge", "token"],
                answers: [(200, "login: success or failure, and what /auth says"), (429, "the guesses are used up")])),
    ]

    private static func decide(
        _ decision: Decision, _ call: Call, _ phone: PhoneCredential
    ) async throws(Refusal) -> Verdict {
        guard let challenge: ChallengeID = try call.id(P.challenge) else { throw .notFound }
        let result = try await call.relay.answer(challenge, decision, number: call[P.number], by: phone)
        return .answer(Answer(200, ["login": .word(result)]))
    }

    private static func decide(
        _ decision: Decision, _ call: Call, _ website: Website
    ) async throws(Refusal) -> Verdict {
        guard let token: UserToken = try call.id(P.token) else { throw .notFound }
        let result = try await call.relay.answer(token: token, decision, by: website, as: call.operation)
        return .answer(Answer(200, ["login": .word(result)]))
    }

    @Sendable static func backup(_ call: Call, _ website: Website) async throws(Refusal) -> Verdict {
        let challenge: ChallengeID? = try call.id(P.challenge)
        let token: UserToken? = try call.id(P.token)
        let told = try await call.relay.backup(challenge, of: token, by: website, as: call.operation)
        return .answer(Answer(200, told.json(login: "failure")))
    }
}
