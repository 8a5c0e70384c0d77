import Domain
import JSON
import Relay

/// Notify: `/auth`, which answers at once or holds the request until the challenge ends.
enum LoginResults {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/auth", "Returns the result of a challenge; with `Prefer: wait=N` it waits for the end",
            Form(
                .website(auth), [P.challenge.optional, P.token.optional], oneOf: ["challenge", "token"],
                answers: [
                    (
                        200,
                        "login: success, failure, wait or empty; challenge, factor, assurance, proof, steps, reason?, "
                            + "context, receipt?, device?"
                    )
                ]))
    ]

    @Sendable static func auth(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let challenge: ChallengeID? = try call.id(P.challenge)
        let token: UserToken? = try call.id(P.token)
        let read: @Sendable () async throws(Refusal) -> ChallengeResult? = { () async throws(Refusal) in
            guard let challenge else {
                guard let token else { throw .notFound }
                return try await call.relay.result(token: token, to: website)
            }
            return try await call.relay.result(challenge, of: token, to: website)
        }
        // If the website gives only a token, the first read finds the challenge to wait for.
        var known = challenge
        if call.waitLimit != nil, known == nil { known = try await read()?.challenge }
        guard let patience = call.waitLimit, let known else { return .answer(answer(try await read(), call)) }
        // The ticket is taken before the read, so that an end between the two is not missed.
        let ticket = call.relay.heldRequests.ticket(for: .challenge(known))
        let told: ChallengeResult?
        do throws(Refusal) {
            told = try await read()
        } catch {
            ticket.cancel()
            throw error
        }
        guard let told, told.challenge == known, told.result == .wait else {
            ticket.cancel()
            return .answer(answer(told, call))
        }
        let duration = call.relay.waitLimit(told, wanted: .seconds(patience))
        guard duration > .zero else {
            ticket.cancel()
            return .answer(answer(told, call))
        }
        return .hold(ticket, duration) { () async throws(Refusal) in .answer(answer(try await read(), call)) }
    }

    private static func answer(_ told: ChallengeResult?, _ call: VerbCall) -> APIResponse {
        var answer = APIResponse(200, told?.json() ?? ["login": ""])
        if let patience = call.waitLimit { answer.add("preference-applied", "wait=\(patience)") }
        return answer
    }
}
