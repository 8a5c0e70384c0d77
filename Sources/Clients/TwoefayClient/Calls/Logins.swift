import Bytes
import JSON
import World

extension RelayClient {
    /// Asks a user. Keep `asked` of what comes back: the receipt is checked against it. Where the website chose the number,
    /// that is the one in there, whatever the relay says.
    public func ask(_ login: LoginRequest) async throws(CallFault) -> OpenLogin {
        let request = Hex.encode(randomness.bytes(16))
        let askedAt = time.now().seconds
        let fields = login.languages.map { ["accept-language": $0] } ?? [:]
        let answer = try await call("POST", "/login", login.body(request: request), fields: fields)
        let answered = answer["number"]?.string
        // Whoever chose one did so in order that the relay cannot. A user who is stopped gets an answer without any.
        if let chosen = login.number, let answered, !answered.isExactly(chosen) {
            throw .odd("its number is not the one that was chosen")
        }
        let asked = LoginRecord(
            challenge: try answer.text("challenge"), username: login.username, request: request,
            number: login.number ?? answered, service: login.service, action: login.action, details: login.details,
            ip: login.ip, userAgent: login.userAgent, askedAt: askedAt)
        return OpenLogin(
            asked: asked, hasPhone: try answer.text("login").isExactly("verified"),
            factor: answer.word(ifAny: "factor"), expiresAt: try answer.timestamp("expires_at"),
            areCodesLocked: answer["codes"]?.string == "locked")
    }

    /// Comes back when it is decided. That may take as long as a challenge lives, ten minutes at most; cancelling the task
    /// ends it at once, and leaves the challenge as it is. A relay that is restarted or gone for a while meanwhile does not
    /// end it.
    public func wait(for login: OpenLogin) async throws(CallFault) -> LoginOutcome {
        try await wait(for: login.challenge)
    }

    /// The same, for who has kept the challenge alone.
    public func wait(for challenge: String) async throws(CallFault) -> LoginOutcome {
        let start = time.instant()
        while true {
            let begun = time.instant()
            var patient = retries
            patient.timeout = max(retries.timeout, Self.longestLife - (begun - start))
            let outcome = try await result(of: challenge, held: Self.longestHold, patient)
            guard outcome.login == .wait, time.instant() - start < Self.longestLife else { return outcome }
            // A relay that ends sends home whom it holds: whoever comes back at once finds it closing its door.
            if time.instant() - begun < Self.soon { await carrier.pause(for: Self.soon) }
        }
    }

    /// How it stands: `.wait` where nothing is decided. Can be read for 24 hours after its end.
    ///
    /// - Parameter hold: so long the relay waits for the end, in whole seconds and 60 at most: for a page that asks again and
    ///   again, and tells its visitor meanwhile by which factor it goes on.
    public func result(of challenge: String, within hold: Duration = .zero) async throws(CallFault) -> LoginOutcome {
        let seconds = min(hold.components.seconds, Self.longestHold)
        return try await result(of: challenge, held: seconds > 0 ? seconds : nil, retries)
    }

    /// Hands in a code that the user has typed: an app's, a token's, one that was sent, or a recovery code.
    ///
    /// - Returns: `.success`; or `.failure`, for a wrong code too: `result` says whether the challenge is still open.
    public func enter(_ code: String, for challenge: String) async throws(CallFault) -> LoginOutcome {
        try LoginOutcome(
            try await call("POST", "/backup", ["challenge": .string(challenge), "otp": .string(code)]))
    }

    /// Begins with that factor now, or has its code sent again.
    public func begin(_ factor: Factor, of challenge: String) async throws(CallFault) {
        try await call("POST", Self.path(of: challenge) + "/factor", ["factor": .string(factor.rawValue)])
    }

    /// The visitor has gone away.
    public func cancel(_ challenge: String) async throws(CallFault) {
        try await call("DELETE", Self.path(of: challenge))
    }

    /// Asked without an Idempotency-Key: it changes nothing, and a kept answer would say for ever that nothing is decided.
    private func result(
        of challenge: String, held seconds: Int64?, _ retries: RetryPolicy
    ) async throws(CallFault) -> LoginOutcome {
        var call = RelayCall("POST", "/auth", body: ["challenge": .string(challenge)])
        if let seconds {
            call.fields["prefer"] = "wait=\(seconds)"
            call.timeout += .seconds(seconds)
        }
        return try LoginOutcome(try await send(call, retries))
    }

    private static func path(of challenge: String) -> String { "/challenge/\(PercentEncoding.encode(challenge))" }

    /// The relay holds no request longer.
    private static let longestHold: Int64 = 60
    /// Of a challenge.
    private static let longestLife = Duration.seconds(600)
    private static let soon = Duration.milliseconds(500)
}
