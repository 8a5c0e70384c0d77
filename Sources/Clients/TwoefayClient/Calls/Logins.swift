import Bytes
import JSON
import World

extension RelayClient {
    /// Opens a challenge for a user.
    ///
    /// Keep `asked` of the result: `ReceiptCheck` compares the receipt with it. If the website
    /// chose the number, `asked` holds that number, whatever the relay answers. `userAgent` may stand
    /// as the browser sent it: what cannot be shown is left out, as the relay would.
    ///
    /// - Throws: `CallFault.odd` if the relay answers with another number than the website chose.
    public func ask(_ login: LoginRequest) async throws(CallFault) -> OpenLogin {
        var login = login
        login.userAgent = login.userAgent?.showable(limit: 512)
        return try await ask(login, request: Hex.encode(randomness.bytes(16)), at: time.now().seconds)
    }

    /// Opens a challenge with the nonce of a request.
    func ask(
        _ login: LoginRequest, request: String, at askedAt: Int64
    ) async throws(CallFault) -> OpenLogin {
        var fields: [String: String] = [:]
        fields["accept-language"] = login.languages.flatMap(Self.language)
        fields["accept-user-language"] = login.chosenLanguage.flatMap(Self.language)
        let answer = try await call(
            "POST", "/login", login.body(request: request), fields: fields, expecting: [201])
        let answered = try answer.text(ifAny: "number")
        guard answered?.isDigits(2...6) ?? true else { throw .odd("its number has not two to six digits") }
        // A website chooses the number itself so that the relay cannot choose it. If no phone can
        // answer, the answer has no number.
        if let chosen = login.number, let answered, !answered.isExactly(chosen) {
            throw .odd("its number differs from the requested one")
        }
        let asked = LoginRecord(
            challenge: try answer.id("challenge"), username: login.username, request: request,
            number: login.number ?? answered, service: login.service, action: login.action, details: login.details,
            ip: login.ip, userAgent: login.userAgent, askedAt: askedAt)
        return OpenLogin(
            asked: asked, hasPhone: try answer.text("login").isExactly("verified"),
            factor: try answer.text(ifAny: "factor").map { Factor(rawValue: $0) },
            expiresAt: try answer.timestamp("expires_at"),
            areCodesLocked: answer["codes"]?.string == "locked",
            missing: try answer.words(ifAny: "missing"), number: answered)
    }

    /// Waits until the login is decided, and returns its outcome.
    ///
    /// This can take as long as a challenge lives, at most ten minutes; after that the outcome may
    /// still be `.wait`. Cancel the task to stop at once; the challenge stays open. A restart or a
    /// short outage of the relay does not end the wait.
    public func wait(for login: OpenLogin) async throws(CallFault) -> LoginOutcome {
        try await wait(for: login.challenge)
    }

    /// Waits for a challenge that the website knows only by its id.
    public func wait(for challenge: String) async throws(CallFault) -> LoginOutcome {
        let start = time.instant()
        while true {
            let begun = time.instant()
            var patient = retries
            patient.timeout = max(retries.timeout, Self.longestLife - (begun - start))
            let outcome = try await result(of: challenge, held: Self.longestHold, patient)
            guard outcome.login == .wait, time.instant() - start < Self.longestLife else { return outcome }
            // A relay that shuts down answers its held requests early. A repetition at once would
            // reach the same relay while it shuts down.
            if time.instant() - begun < Self.soon { await carrier.pause(for: Self.soon) }
        }
    }

    /// Returns the state of a challenge: `.wait` if it is not decided yet. The result can be read
    /// for 24 hours after the end of the challenge.
    ///
    /// - Parameter hold: how long the relay holds the request until the challenge ends, in whole
    ///   seconds, at most 60. Use it for a page that polls, and shows its visitor the current
    ///   factor meanwhile.
    public func result(of challenge: String, within hold: Duration = .zero) async throws(CallFault) -> LoginOutcome {
        let seconds = min(hold.components.seconds, Self.longestHold)
        return try await result(of: challenge, held: seconds > 0 ? seconds : nil, retries)
    }

    /// Submits a code that the user entered: of an app or a token, from a mail or text message, or
    /// a recovery code.
    ///
    /// - Returns: `.success` or `.failure`. A wrong code is also `.failure`: if `reason` is nil, the
    ///   challenge is still open.
    public func enter(_ code: String, for challenge: String) async throws(CallFault) -> LoginOutcome {
        try LoginOutcome(
            try await call("POST", "/backup", ["challenge": .string(challenge), "otp": .string(code)]))
    }

    /// Starts the given factor now, or sends its code again.
    public func begin(_ factor: Factor, of challenge: String) async throws(CallFault) {
        try await call(
            "POST", Self.path(of: challenge) + "/factor", ["factor": .string(factor.rawValue)], expecting: [202])
    }

    /// Cancels a challenge, for example because the visitor has left.
    public func cancel(_ challenge: String) async throws(CallFault) {
        try await call("DELETE", Self.path(of: challenge), expecting: [204])
    }

    /// Reads a result, without an idempotency key. The call changes nothing, and a stored answer
    /// would report `.wait` even after the decision.
    private func result(
        of challenge: String, held seconds: Int64?, _ retries: RetryPolicy
    ) async throws(CallFault) -> LoginOutcome {
        var call = RelayCall("POST", "/auth", body: ["challenge": .string(challenge)])
        if let seconds {
            call.fields["prefer"] = "wait=\(seconds)"
            call.timeout += .seconds(seconds)
        }
        return try LoginOutcome(try await send(call, retries, expecting: [200]))
    }

    private static func path(of challenge: String) throws(CallFault) -> String { try path(["challenge", challenge]) }

    /// The longest time for which the relay holds a request, in seconds.
    private static let longestHold: Int64 = 60
    /// The longest lifetime of a challenge.
    private static let longestLife = Duration.seconds(600)
    /// The shortest time between two held requests.
    private static let soon = Duration.milliseconds(500)
}
