import Domain
import HTTP
import JSON
import Log
import Relay

/// A request with its route and form: it looks up the caller, reads the body, runs the verb and
/// returns the answer or the held request.
///
/// A POST of a website with an `Idempotency-Key` runs once: its answer is stored, and a repetition
/// gets the stored answer.
///
/// A held request does not keep this object (`AnswerContext`).
///
/// Tests: `APITests/IdempotencyTests.swift` and `TwoRelayIdempotencyTests.swift`.
final class RequestContext: Sendable {
    let request: Request
    let pathParameters: [String: String]
    let languages: RequestedLanguages
    let answers: AnswerContext

    private var api: API { answers.api }
    private var route: Route { answers.route }
    private var form: Form { answers.form }

    init(
        request: Request, pathParameters: [String: String], languages: RequestedLanguages, answers: AnswerContext
    ) {
        self.request = request
        self.pathParameters = pathParameters
        self.languages = languages
        self.answers = answers
    }

    func outcome() async -> Outcome {
        switch await answers.caller() {
        case .failure(let refusal): return .response(answers.refusal(Problem(refusal)))
        case .success(let caller):
            answers.access.identified(caller)
            if case .phone(let phone) = caller, !phone.isCertified { request.identification?.isPhone(phone.key) }
            return await answers.tenant(caller).run { await Actor.run(caller.actor) { await act(caller) } }
        }
    }

    private func act(_ caller: Caller) async -> Outcome {
        do throws(Problem) {
            let body = try read(for: caller)
            // A malformed key is refused whoever sends it, because the document has one schema for all.
            guard let key = route.takesKeys ? try IdempotencyKey(request.fields) : nil,
                case .website(let website) = caller, !form.isSafe
            else { return await act(caller, body, as: api.relay.operations.new(), nil) }
            let repeated = IdempotentRequest(
                website: website.id, route: route.path.text, key: key.text, content: fingerprint)
            return try await act(caller, body, once: repeated)
        } catch {
            return .response(answers.end(answers.problem(error).counting(for: caller)))
        }
    }

    private func read(for caller: Caller) throws(Problem) -> JSONObject {
        do {
            return try form.read(request, pathParameters: pathParameters, method: route.method)
        } catch {
            throw notTheirs(caller) ?? error
        }
    }

    /// The problem for a website whose policy does not allow this form; nil if the policy allows
    /// it. It replaces faults and `not_found`, which would not help this caller. A challenge that
    /// was opened under another policy can still be answered under that policy.
    private func notTheirs(_ caller: Caller) -> Problem? {
        guard form.isOriginal, case .website(let website) = caller, website.policy.answers != .website else {
            return nil
        }
        let answers = website.policy.answers.rawValue
        return Problem(
            .forbidden,
            LocalizedText(
                "This website's policy does not allow this form: answers is \(answers)",
                de: "Die Richtlinie dieser Website erlaubt diese Form nicht: answers ist \(answers)"))
    }

    /// Runs a request under an idempotency key. If its answer is stored, that answer is returned
    /// again.
    private func act(_ caller: Caller, _ body: JSONObject, once repeated: IdempotentRequest) async throws(Problem)
        -> Outcome
    {
        var isCounted = false
        if form.claimsKeys {
            switch try await attempt(caller, body, claiming: repeated) {
            case .kept(let answer): return .response(answers.end(answer.counting(for: caller)))
            case .unclaimed(let wasCounted): isCounted = wasCounted
            case .answer, .hold: break
            }
        }
        let repetition: IdempotencyOutcome
        do throws(Refusal) {
            repetition = try await api.relay.begin(repeated)
        } catch {
            throw Problem(error)
        }
        switch repetition {
        case .run(let operation):
            let repetition = Repetition(of: repeated, as: operation)
            return await act(caller, body, as: operation, repetition, isCounted: isCounted)
        case .kept(let status, let body):
            var answer = APIResponse(status: status, body: body)
            if status >= 400, let language = Problem.language(of: body) { answer.add(language) }
            answer.add("idempotency-replayed", "true")
            return .response(answers.end(answer))
        case .shownOnce:
            throw .shownOnce
        case .stillRunning:
            throw Problem(
                .conflict,
                LocalizedText(
                    "The first request with this Idempotency-Key is still running",
                    de: "Die erste Anfrage mit diesem Idempotency-Key wird noch ausgeführt"), retryAfter: 1)
        case .mismatch:
            throw Problem(
                .idempotencyMismatch,
                LocalizedText(
                    "This Idempotency-Key was already used for another request",
                    de: "Dieser Idempotency-Key wurde schon für eine andere Anfrage verwendet"))
        }
    }

    /// Lets the verb claim the idempotency key with its change. If it does not come to that, the key
    /// is claimed first, and the verb runs again: it then reports what prevents the change. It throws
    /// what is not kept under a key, and would only prevent a second attempt, too.
    private func attempt(
        _ caller: Caller, _ body: JSONObject, claiming repeated: IdempotentRequest
    ) async throws(Problem) -> VerbOutcome {
        // Nobody repeats this operation: the key is stored with its answer, or not at all.
        var call = call(body, as: api.relay.operations.new())
        call.unclaimed = repeated
        do throws(Refusal) {
            return try await form.run(call, for: caller)
        } catch {
            switch error {
            case .unavailable, .websiteLimited: throw Problem(error)
            default: return .unclaimed(isCounted: false)
            }
        }
    }

    private func call(_ body: JSONObject, as operation: Operation) -> VerbCall {
        VerbCall(
            api: api, claim: answers.claim, pathParameters: pathParameters, body: body,
            operation: operation.speaking(languages), remote: request.remote,
            waitLimit: Preference.wait(request.fields), fields: request.fields, trace: answers.access.trace)
    }

    private func act(
        _ caller: Caller, _ body: JSONObject, as operation: Operation, _ repetition: Repetition?,
        isCounted: Bool = false
    ) async -> Outcome {
        var call = call(body, as: operation)
        call.isCounted = isCounted
        let verdict: VerbOutcome
        do throws(Refusal) {
            verdict = try await form.run(call, for: caller)
        } catch {
            let problem = error == .notFound ? notTheirs(caller) : nil
            let answer = answers.problem(problem ?? Problem(error)).counting(for: caller)
            return .response(await answers.end(answer, repetition))
        }
        var place: HeldRequestSlot?
        if case .hold(let ticket, _, _) = verdict {
            if let website = caller.website {
                let most = mostHeld(caller)
                place = api.relay.quotaUse.hold(website.id, upTo: most)
                guard place != nil else {
                    ticket.cancel()
                    if most == nil {
                        api.relay.exceeded(.held, by: website.name)
                    } else {
                        api.relay.reachedHeld(website.id, website.name)
                    }
                    let problem = Problem(
                        most == nil
                            ? .limited(retryAfter: API.quotaPause)
                            : .websiteLimited(.held, retryAfter: API.quotaPause))
                    return .response(await answers.end(answers.problem(problem), repetition))
                }
            }
            answers.access.held()
        }
        return await answers.come(to: verdict, caller, repetition, place)
    }

    /// The website's own limit of held requests; nil if it has none.
    private func mostHeld(_ caller: Caller) -> Int? {
        switch caller {
        case .website(let website): website.policy.limits[.held]
        case .phone(let phone):
            api.relay.mostHeld(phone.website.id, phone.website.name, policy: phone.website.policy)
        default: nil
        }
    }

    /// The parts of the request that have a meaning, each with its length, and the body at the end.
    /// Two requests under one idempotency key are the same if their fingerprints are equal.
    private var fingerprint: [UInt8] {
        let header = ["token", "username"].map { request.fields.values($0).joined(separator: "\n") }
        var content: [UInt8] = []
        for part in [request.method, route.path.text, request.path] + header {
            content.append(contentsOf: String(part.utf8.count).utf8)
            content.append(UInt8(ascii: ":"))
            content.append(contentsOf: part.utf8)
        }
        return content + request.body
    }
}

/// An idempotency key: 1 to 255 visible ASCII characters, given once.
struct IdempotencyKey {
    let text: String

    /// Reads the key; nil if the request has none.
    init?(_ fields: Fields) throws(Problem) {
        let values = fields.values("idempotency-key")
        guard let value = values.first else { return nil }
        guard values.count == 1, (1...255).contains(value.utf8.count),
            value.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else {
            throw .invalid([
                FieldFault(
                    "Idempotency-Key", .format,
                    LocalizedText(
                        "must be 1 to 255 visible ASCII characters, given once",
                        de: "muss aus 1 bis 255 sichtbaren ASCII-Zeichen bestehen und genau einmal vorkommen"))
            ])
        }
        text = value
    }
}
