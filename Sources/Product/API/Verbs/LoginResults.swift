import Domain
import JSON
import Relay

/// Notify: `/auth`, which answers at once or holds the request until the challenge ends.
enum LoginResults {
    typealias P = Parameters

    static let routes = [
        Route(
            "showResult", "POST", "/auth",
            "Returns the result of a challenge; with `Prefer: wait=N` it waits for the end",
            Form(
                .website(auth), [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"], isSafe: true,
                answers: [Answer(200, "The result", .toldResult)],
                problems: [
                    .notFound: "there is no such challenge or user",
                    .forbidden: "token alone, and the policy is not answers: website",
                    .conflict: "token is of another user than challenge",
                ]))
    ]

    @Sendable static func auth(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let challenge: ChallengeID? = try call.id(P.challenge)
        let token: UserToken? = try call.id(P.token)
        let query = Query(relay: call.relay, challenge: challenge, token: token, patience: call.waitLimit)
        // If the website gives only a token, the first read finds the challenge to wait for.
        var known = challenge
        if call.waitLimit != nil, known == nil { known = try await query.read(for: website)?.challenge }
        guard let patience = call.waitLimit, let known else { return .answer(try await query.answer(to: website)) }
        // The ticket is taken before the read, so that an end between the two is not missed.
        let ticket = call.relay.heldRequests.ticket(for: .challenge(known))
        let told: ChallengeResult?
        do throws(Refusal) {
            told = try await query.read(for: website)
        } catch {
            ticket.cancel()
            throw error
        }
        guard let told, told.challenge == known, told.result == .wait else {
            ticket.cancel()
            return .answer(query.answer(told))
        }
        let duration = call.relay.waitLimit(told, wanted: .seconds(patience))
        guard duration > .zero else {
            ticket.cancel()
            return .answer(query.answer(told))
        }
        return .hold(ticket, duration) { [query] caller async throws(Refusal) in
            .answer(try await query.answer(to: try caller.asWebsite))
        }
    }

    /// The question of a request: all that a held one keeps of it.
    private struct Query {
        let relay: Relay
        let challenge: ChallengeID?
        let token: UserToken?
        let patience: Int?

        func read(for website: Website) async throws(Refusal) -> ChallengeResult? {
            guard let challenge else {
                guard let token else { throw .notFound }
                return try await relay.result(token: token, to: website)
            }
            return try await relay.result(challenge, of: token, to: website)
        }

        func answer(to website: Website) async throws(Refusal) -> APIResponse {
            answer(try await read(for: website))
        }

        func answer(_ told: ChallengeResult?) -> APIResponse {
            var answer = APIResponse(200, told?.json() ?? ["login": ""])
            answer.apply(wait: patience)
            return answer
        }
    }
}
