import Domain
import HTTP
import JSON
import Relay

/// A request on its way through: who calls, what was sent, whether it came before, and what the verb makes of it.
struct RequestContext: Sendable {
    let api: API
    let request: Request
    let route: Route
    let pathParameters: [String: String]
    let claim: PresentedIdentity
    let form: Form
    let access: AccessLogLine

    func outcome() async -> Outcome {
        switch await caller(claim) {
        case .failure(let refusal): return .response(self.refusal(Problem(refusal)))
        case .success(let caller):
            access.identified(caller)
            if case .phone(let phone) = caller, !phone.isCertified { request.identification?.isPhone(phone.key) }
            return await tenant(caller).run { await act(caller) }
        }
    }

    func refusal(_ problem: Problem) -> Response { end(APIResponse(problem)) }

    /// Whoever is not known yet does not queue in the line of those who are.
    private func caller(_ claim: PresentedIdentity) async -> Result<Caller, Refusal> {
        await claim.tenant(from: request.remote).run {
            do throws(Refusal) {
                return .success(try await api.caller(claim, for: form, from: request.remote))
            } catch {
                return .failure(error)
            }
        }
    }

    private func tenant(_ caller: Caller) -> Tenant { caller.tenant ?? claim.tenant(from: request.remote) }

    private func act(_ caller: Caller) async -> Outcome {
        do throws(Problem) {
            let body = try read(for: caller)
            guard case .website(let website) = caller, route.method == "POST",
                let key = try IdempotencyKey(request.fields)
            else { return await act(caller, body, as: api.relay.operations.new(), repeated: nil) }
            let repeated = IdempotentRequest(
                website: website.id, route: route.path.text, key: key.text, content: fingerprint)
            return try await act(caller, body, once: repeated)
        } catch {
            return .response(end(APIResponse(error)))
        }
    }

    private func read(for caller: Caller) throws(Problem) -> JSONObject {
        do {
            return try form.read(request, pathParameters: pathParameters, method: route.method)
        } catch {
            throw notTheirs(caller) ?? error
        }
    }

    /// Whoever may not use this form need not be told how it is filled in, or what it does not find. (A challenge that
    /// was asked while the policy was another one is answered under that one.)
    private func notTheirs(_ caller: Caller) -> Problem? {
        guard form.isOriginal, case .website(let website) = caller, website.policy.answers != .website else {
            return nil
        }
        return Problem(.forbidden, "This website's policy is answers: \(website.policy.answers.rawValue)")
    }

    /// Under an Idempotency-Key: what was answered before is answered again.
    private func act(_ caller: Caller, _ body: JSONObject, once repeated: IdempotentRequest) async throws(Problem)
        -> Outcome
    {
        let repetition: IdempotencyOutcome
        do throws(Refusal) {
            repetition = try await api.relay.begin(repeated)
        } catch {
            throw Problem(error)
        }
        switch repetition {
        case .run(let operation): return await act(caller, body, as: operation, repeated: repeated)
        case .kept(let status, let body):
            var answer = APIResponse(status: status, body: body)
            answer.add("idempotency-replayed", "true")
            return .response(end(answer))
        case .shownOnce:
            throw .shownOnce
        case .stillRunning:
            throw Problem(.conflict, "The first request under this Idempotency-Key is still running", retryAfter: 1)
        case .mismatch:
            throw Problem(.idempotencyMismatch, "Another request was made under this Idempotency-Key")
        }
    }

    private func act(
        _ caller: Caller, _ body: JSONObject, as operation: Operation, repeated: IdempotentRequest?
    ) async -> Outcome {
        let call = VerbCall(
            api: api, pathParameters: pathParameters, body: body, operation: operation, remote: request.remote,
            waitLimit: Preference.wait(request.fields), language: AcceptLanguage.read(request.fields))
        let verdict: VerbOutcome
        do throws(Refusal) {
            verdict = try await form.run(call, for: caller)
        } catch {
            let problem = error == .notFound ? notTheirs(caller) : nil
            return .response(await end(APIResponse(problem ?? Problem(error)), operation, repeated))
        }
        var place: HeldRequestSlot?
        if case .hold(let ticket, _, _) = verdict {
            if let website = caller.website {
                place = api.relay.quotaUse.hold(website.id)
                guard place != nil else {
                    ticket.cancel()
                    api.relay.exceeded(.held, by: website.name)
                    let problem = Problem(.limited(retryAfter: API.quotaPause))
                    return .response(await end(APIResponse(problem), operation, repeated))
                }
            }
            access.held()
            // Whoever holds may go away without a word. A repetition then has not to wait: it only reads.
            if let repeated { await api.relay.release(repeated, operation) }
        }
        return await come(to: verdict, caller, operation, repeated, place)
    }

    /// - Parameter place: the held request's, which it has until it is answered or its caller is gone.
    private func come(
        to verdict: VerbOutcome, _ caller: Caller, _ operation: Operation, _ repeated: IdempotentRequest?,
        _ place: HeldRequestSlot?
    ) async -> Outcome {
        switch verdict {
        case .answer(let answer): return .response(await end(answer, operation, repeated))
        case .hold(let ticket, let duration, let finish):
            return .held(
                Hold(duration: duration, owner: caller.website?.name ?? "", wait: ticket) {
                    // A caller that was revoked meanwhile learns nothing.
                    if case .failure(let refusal) = await self.caller(caller.claim(after: claim)) {
                        return await come(
                            to: .answer(APIResponse(Problem(refusal))), caller, operation, repeated, place)
                    }
                    return await tenant(caller).run {
                        let verdict: VerbOutcome
                        do throws(Refusal) {
                            verdict = try await finish()
                        } catch {
                            verdict = .answer(APIResponse(Problem(error)))
                        }
                        return await come(to: verdict, caller, operation, repeated, place)
                    }
                })
        }
    }

    private func end(_ answer: APIResponse, _ operation: Operation, _ repeated: IdempotentRequest?) async -> Response {
        guard let repeated else { return end(answer) }
        switch answer.status {
        case 401, 403, 429, 500...:
            await api.relay.release(repeated, operation)
        default:
            do throws(Refusal) {
                try await api.relay.finish(
                    repeated, operation, status: answer.status, body: answer.body, holdsSecret: answer.holdsSecret)
            } catch {
                // It happened, and the caller is told so. A repetition runs again under the same operation.
                await api.relay.release(repeated, operation)
            }
        }
        return end(answer)
    }

    private func end(_ answer: APIResponse) -> Response {
        access.ended(answer.status)
        return api.inviting(answer, to: claim, on: route).response(to: access.id)
    }

    /// Everything in the request that has a meaning, each part with its length.
    private var fingerprint: [UInt8] {
        let header = ["token", "username"].map { request.fields.values($0).joined(separator: "\n") }
        var content: [UInt8] = []
        for part in [request.method, route.path.text, request.path] + header {
            content.append(contentsOf: "\(part.utf8.count):".utf8)
            content.append(contentsOf: part.utf8)
        }
        return content + request.body
    }
}

/// 1 to 255 visible ASCII characters, given once.
struct IdempotencyKey {
    let text: String

    /// Nil where there is none.
    init?(_ fields: Fields) throws(Problem) {
        let values = fields.values("idempotency-key")
        guard let value = values.first else { return nil }
        guard values.count == 1, (1...255).contains(value.utf8.count),
            value.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else {
            throw .invalid([
                FieldFault("Idempotency-Key", .format, "must be 1 to 255 visible ASCII characters, given once")
            ])
        }
        text = value
    }
}
