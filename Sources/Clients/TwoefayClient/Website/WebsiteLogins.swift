import Bytes
import JSON
import World

extension TwoefayRelay {
    /// Opens a login, after the right password. Keep the result in the visitor's session.
    ///
    /// `ip`, `userAgent` and `acceptLanguage` may stand as the browser sent them: they are cleaned or
    /// left out. The phone shows and signs `service`, `action` and `details`.
    ///
    /// - Parameters:
    ///   - ip: the visitor's address.
    ///   - userAgent: the visitor's `User-Agent`.
    ///   - service: the part of the website that the visitor wants to use.
    ///   - action: the action that the user is asked to approve.
    ///   - details: labelled lines, such as an amount and a recipient.
    ///   - number: the number to show; nil chooses one, as a website should.
    ///   - factors: the factors that this login accepts; nil for all.
    ///   - leastAssurance: the lowest assurance that this login accepts.
    ///   - isKnown: whether the browser is known: see `KnownBrowsers`.
    ///   - life: the life of the challenge; nil for that of the relay's settings.
    ///   - acceptLanguage: the visitor's `Accept-Language`.
    ///   - chosenLanguage: the language that the visitor chose on the website.
    public func ask(
        _ username: String, ip: String? = nil, userAgent: String? = nil, service: String? = nil,
        action: String? = nil, details: [LoginRecord.Detail] = [], number: String? = nil, factors: [Factor]? = nil,
        leastAssurance: Assurance? = nil, isKnown: Bool = false, life: Duration? = nil,
        acceptLanguage: String? = nil, chosenLanguage: String? = nil
    ) async throws -> Login {
        guard factors != [] else {
            throw CallFault.unable("an empty list of factors lets nobody in: leave it out")
        }
        let wanted = LoginRequest(
            username: username, ip: BrowserTexts.address(ip), userAgent: BrowserTexts.userAgent(userAgent),
            service: service, action: action, details: details, number: number, languages: acceptLanguage,
            chosenLanguage: chosenLanguage, factors: factors, leastAssurance: leastAssurance, isKnown: isKnown,
            life: life)
        let request = Hex.encode(client.randomness.bytes(16))
        let now = now
        try await store.open(request, at: now)
        let open = try await open(wanted, request, now)
        var asked = open.asked
        asked.number = open.number
        return Login(
            asked: asked, factors: factors, leastAssurance: leastAssurance, factor: open.factor,
            hasPhone: open.hasPhone, areCodesLocked: open.areCodesLocked, missing: open.missing)
    }

    /// Opens a login with a number that the website chose. A relay that chose it could show two
    /// visitors the same one, and have the user approve the login of the other.
    private func open(
        _ wanted: LoginRequest, _ request: String, _ now: Int64
    ) async throws(CallFault) -> OpenLogin {
        var wanted = wanted
        guard wanted.number == nil, requirements.leastDigits > 0 else {
            return try await client.ask(wanted, request: request, at: now)
        }
        wanted.number = client.randomness.digits(max(2, requirements.leastDigits))
        do throws(CallFault) {
            return try await client.ask(wanted, request: request, at: now)
        } catch {
            guard let problem = error.problem, problem.code == .invalid, problem.faults.count == 1,
                problem.faults[0].parameter == "number", problem.faults[0].code == "length",
                requirements.leastDigits < Requirements.mostDigits
            else { throw error }
        }
        // The operator may have raised the number of digits. Only that choice is the relay's.
        wanted.number = client.randomness.digits(Requirements.mostDigits)
        return try await client.ask(wanted, request: request, at: now)
    }

    /// Returns the relay's own answer, unchecked: for a page that shows the state of a login. It lets
    /// nobody in.
    ///
    /// - Parameter hold: how long the relay holds its answer until the login ends, in whole seconds,
    ///   at most 60.
    public func state(of login: Login, hold: Duration = .zero) async throws(CallFault) -> JSONObject {
        let outcome = try await client.result(of: login.challenge, within: hold)
        guard outcome.login != .nothing else { throw .odd("login must be success, failure or wait") }
        return outcome.json
    }

    /// Waits for the decision and checks it. Let the user in only if it is approved.
    ///
    /// - Parameter within: how long to wait. Then the decision may be open. With nil, the wait ends
    ///   with the life of the challenge, and outages or limits do not end it earlier.
    /// - Returns: the decision. An approval is returned once: a second call for the same login throws
    ///   `ReceiptFault.requestUsed`.
    public func wait(for login: Login, within: Duration? = nil) async throws -> Decision {
        let time = client.time
        let end = time.instant() + (within ?? Self.longestLife)
        while true {
            let begun = time.instant()
            let hold = max(0, (end - begun).components.seconds)
            let answer: JSONObject
            do throws(CallFault) {
                answer = try await state(of: login, hold: .seconds(hold))
            } catch {
                try await endure(error, isPatient: within == nil, until: end)
                continue
            }
            if answer["login"]?.string != "wait" || time.instant() >= end || hold == 0 {
                return try await check(login, answer)
            }
            // A relay that shuts down answers its held requests early. A repetition at once would
            // reach it again.
            if time.instant() - begun < Self.soon { await client.carrier.pause(for: Self.soon) }
        }
    }

    /// Pauses after a failure that may pass before the end, and throws all others.
    private func endure(_ fault: CallFault, isPatient: Bool, until end: Instant) async throws(CallFault) {
        let pause = fault.problem?.retryAfter.map { max($0, .seconds(1)) } ?? .seconds(5)
        let passes = fault.problem?.code == .limited || RetryPolicy.website.isWorthwhile(after: fault)
        guard passes, isPatient, client.time.instant() + pause <= end else { throw fault }
        await client.carrier.pause(for: pause)
        guard !Task.isCancelled else { throw .cancelled }
    }

    /// Submits a code that the visitor typed. After a wrong one the decision is open.
    ///
    /// - Throws: `ReceiptFault.notSigned` unless the website accepts codes (`Requirements.acceptCodes`).
    public func enter(_ code: String, for login: Login) async throws -> Decision {
        let answer = try await client.call(
            "POST", "/backup", ["challenge": .string(login.challenge), "otp": .string(code)], expecting: [200])
        if answer["login"]?.string == "failure", answer["reason"]?.isNull ?? true {
            return Decision(.open, answer)  // a wrong code: the challenge goes on
        }
        return try await check(login, answer)
    }

    /// Begins a factor now, or sends its code again.
    public func begin(_ factor: Factor, of login: Login) async throws(CallFault) {
        try await client.begin(factor, of: login.challenge)
    }

    /// Cancels a login, for example because the visitor left.
    public func cancel(_ login: Login) async throws(CallFault) { try await client.cancel(login.challenge) }

    private static let soon = Duration.milliseconds(500)
}
