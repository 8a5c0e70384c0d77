import Domain
import HTTP
import Log
import Relay

/// The part of a request that its answer needs. A held request keeps only this of it: thousands of
/// requests may be held at the same time, and most of their memory would be header fields, bodies
/// and callers that nobody reads again.
///
/// A held request has a slot of the website's quota until it is answered or its caller is gone.
/// Before it is answered, its caller is looked up again, because it may have been revoked.
///
/// Tests: `APITests/HeldRequestTests.swift`.
struct AnswerContext: Sendable {
    let route: Route
    let form: Form
    /// The identity to look up. It is the identity that the request presented, and that of the phone
    /// after its proof was accepted and the request was held.
    private(set) var claim: PresentedIdentity
    /// The source address of the request.
    let remote: String
    let access: AccessLogLine

    var api: API { access.api }

    /// Looks up the caller. An unknown caller does not wait in the queue of known ones.
    func caller() async -> Result<Caller, Refusal> {
        await claim.tenant(from: remote).run {
            do throws(Refusal) {
                return .success(try await api.caller(claim, for: form, from: remote))
            } catch {
                return .failure(error)
            }
        }
    }

    func tenant(_ caller: Caller) -> Tenant { caller.tenant ?? claim.tenant(from: remote) }

    // MARK: Holding

    /// Turns the outcome of a verb into an answer or a held request.
    ///
    /// - Parameter place: the slot of the held request, which is kept until the request is answered
    ///   or its caller is gone.
    func come(
        to verdict: VerbOutcome, _ caller: Caller, _ repetition: Repetition?, _ place: HeldRequestSlot?
    ) async -> Outcome {
        switch verdict {
        case .answer(let answer):
            return .response(await end(answer.counting(for: caller), repetition))
        case .kept, .unclaimed:
            // Our own bug: only an attempt to claim a key ends like this.
            api.log.error("api.undeclared", [.name: "claim"])
            return .response(await end(problem(Problem(.broken)), repetition))
        case .hold(let ticket, let duration, let finish):
            var held = self
            held.claim = caller.claim(after: claim)
            return .held(
                Hold(duration: duration, owner: caller.website?.name ?? "", wait: ticket) { [held] in
                    await LoggedRequest.run(held.access.id, trace: held.access.trace?.trace) {
                        await held.complete(finish, repetition, place)
                    }
                })
        }
    }

    /// Completes a held request when its event has come or its time is over.
    private func complete(
        _ finish: (Caller) async throws(Refusal) -> VerbOutcome, _ repetition: Repetition?, _ place: HeldRequestSlot?
    ) async -> Outcome {
        // A caller that was revoked meanwhile gets no result.
        let caller: Caller
        switch await self.caller() {
        case .failure(let refusal): return .response(await end(problem(Problem(refusal)), repetition))
        case .success(let found): caller = found
        }
        return await tenant(caller).run {
            await Actor.run(caller.actor) {
                let verdict: VerbOutcome
                do throws(Refusal) {
                    verdict = try await finish(caller)
                } catch {
                    verdict = .answer(problem(Problem(error)))
                }
                return await come(to: verdict, caller, repetition, place)
            }
        }
    }

    // MARK: Answering

    func problem(_ problem: Problem) -> APIResponse { APIResponse(problem, in: access.language) }

    func refusal(_ problem: Problem) -> Response { end(self.problem(problem)) }

    /// Ends the request, and keeps its answer for repetitions.
    func end(_ answer: APIResponse, _ repetition: Repetition?) async -> Response {
        guard let repetition else { return end(answer) }
        let (repeated, operation) = (repetition.request, repetition.operation)
        switch answer.status {
        case 401, 403, 429, 500...:
            await api.relay.release(repeated, operation)
        default:
            do throws(Refusal) {
                try await api.relay.finish(
                    repeated, operation, status: answer.status, body: answer.body, holdsSecret: answer.holdsSecret)
            } catch {
                // The change happened, and the caller gets its answer. A repetition runs again
                // under the same operation.
                await api.relay.release(repeated, operation)
            }
        }
        return end(answer)
    }

    func end(_ answer: APIResponse) -> Response {
        access.ended(answer.status)
        return api.inviting(answer, to: claim, on: route).response(to: access.id)
    }
}

/// A request under its idempotency key, with the operation that it runs. It is an object, because
/// few requests have one.
final class Repetition: Sendable {
    let request: IdempotentRequest
    let operation: Operation

    init(of request: IdempotentRequest, as operation: Operation) {
        self.request = request
        self.operation = operation
    }
}
