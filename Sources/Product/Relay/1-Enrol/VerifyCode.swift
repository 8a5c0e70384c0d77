import Bytes
import Domain
import Log
import World

/// The store port for codes that a website checks outside a login (verb Enrol).
public protocol VerifyCodeStore: Sendable {
    /// Returns the name of the user to whom the active phone belongs; nil if the website has no
    /// such phone.
    func username(of device: DeviceID, website: WebsiteID) async throws(StoreFailure) -> String?
    /// Uses a right code up. Returns false if something has changed since it was judged.
    func use(_ code: VerifiedCode, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns the factor whose code this operation has used up; nil if it has used none.
    func factor(verifiedBy operation: OperationID) async throws(StoreFailure) -> Factor?
}

/// The person whose code a website checks.
public enum CodeOwner: Sendable, Equatable {
    case username(String)
    /// The user of this phone.
    case device(DeviceID)
}

/// A right code of an app or a hardware token, that is used up outside a login.
public struct VerifiedCode: Sendable, Equatable {
    public let user: UserID
    public let factor: FactorID
    /// The user's consecutive wrong codes, as they were read.
    public let failures: Int
    /// The counter of the factor as it was read, and its new value.
    public let counter: Int64
    public let next: Int64
    public let at: Timestamp

    public init(user: UserID, factor: FactorID, failures: Int, counter: Int64, next: Int64, at: Timestamp) {
        self.user = user
        self.factor = factor
        self.failures = failures
        self.counter = counter
        self.next = next
        self.at = at
    }
}

/// The check of a code outside a login, for example before a call centre changes something.
///
/// The codes of the user's app and hardware token are checked. Codes that the relay sends belong to
/// a challenge or an address, and a recovery code is not spent on a check.
///
/// Invariants: as for the codes of a login (`Backup.swift`). A right code is used up in the script
/// that records it, so neither a login nor another check accepts it again. A wrong code counts
/// once, in the budget that all codes of the user share, so nobody gains guesses by turning from
/// one route to the other.
///
/// Tests: `RelayTests/VerifyCodeTests.swift`, `APITests/VerifyCodeTests.swift`.
extension Relay {
    /// Checks a code and uses it up.
    ///
    /// - Returns: the factor that the code belongs to; nil if the code is wrong.
    public func verify(
        code: String, of owner: CodeOwner, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Factor? {
        let username = try await username(of: owner, website)
        // If the operation may have run before, its recorded result counts.
        if operation.mayHaveRun, let event = try await recordedEvent(operation) {
            guard event != WrongCode.event else { return nil }
            return try await withStore("verify") { () async throws(StoreFailure) in
                try await store.factor(verifiedBy: operation.id)
            }
        }
        for _ in 0..<Self.mostReadings {
            let user = try await user(named: username, of: website)
            guard user.state == .active else { throw Self.stopped(user.state) }
            guard !user.codes.isLocked else {
                record(.locked, user, website, [])
                throw .codesLocked
            }
            let own = try await factors(of: user.id).filter {
                $0.state == .active && !$0.needsResync && [.totp, .hotp].contains($0.kind)
            }
            guard !own.isEmpty else {
                throw .conflict([
                    FieldFault(
                        "otp", .state,
                        LocalizedText(
                            "must be a code of an app or a token, and the user has neither",
                            de: "muss ein Code einer App oder eines Tokens sein, und der Benutzer hat keins von beiden")
                    )
                ])
            }
            let suspects = own.filter { OTP.isCode(code, digits: $0.digits) }
            let now = time.now()
            // The refusal is the same for right and wrong codes, so it reveals nothing about the
            // code.
            if let pause = user.codes.pause(at: now) {
                metrics.reached(.guess)
                record(.early, user, website, suspects)
                throw .limited(retryAfter: pause)
            }
            guard !suspects.isEmpty else {
                // The code has the form of none of the user's codes. It is wrong, but does not
                // count.
                record(.void, user, website, suspects)
                return nil
            }
            if let outcome = try await judge(code, suspects, of: user, by: website, at: now, as: operation) {
                return outcome.factor
            }
        }
        throw .unavailable
    }

    private func username(of owner: CodeOwner, _ website: Website) async throws(Refusal) -> String {
        switch owner {
        case .username(let name): return name
        case .device(let device):
            let name = try await withStore("verify") { () async throws(StoreFailure) in
                try await store.username(of: device, website: website.id)
            }
            guard let name else { throw .notFound }
            return name
        }
    }

    private struct Judged {
        let factor: Factor?
    }

    /// Judges a code; returns nil if something has changed since the factors were read.
    private func judge(
        _ code: String, _ suspects: [CodeFactor], of user: UserRow, by website: Website, at now: Timestamp,
        as operation: Operation
    ) async throws(Refusal) -> Judged? {
        var right: (factor: CodeFactor, next: Int64)?
        // Every factor is compared, so the time does not depend on which one matches.
        for suspect in suspects {
            let next = try next(after: code, of: suspect, user.id, website, at: now)
            if right == nil, let next { right = (suspect, next) }
        }
        guard let right else {
            let wrong = WrongCode(
                user: user.id, factors: suspects, challenge: nil, before: user.codes,
                guesses: website.policy.guesses, at: now)
            guard try await count(wrong, by: website, as: operation) else { return nil }
            record(.wrong, user, website, suspects)
            return Judged(factor: nil)
        }
        let used = VerifiedCode(
            user: user.id, factor: right.factor.id, failures: user.codes.failures, counter: right.factor.counter,
            next: right.next, at: now)
        let isUsed = try await withStore("verify") { () async throws(StoreFailure) in
            try await store.use(used, as: operation)
        }
        guard isUsed else { return nil }
        record(.right, user, website, [right.factor])
        return Judged(factor: right.factor.kind)
    }

    /// Returns the counter of the factor after this code; nil if the code is wrong.
    private func next(
        after code: String, of factor: CodeFactor, _ user: UserID, _ website: Website, at now: Timestamp
    ) throws(Refusal) -> Int64? {
        guard let secret = try secret(of: factor, user: user, website: website.id) else { return nil }
        let isTOTP = factor.kind == .totp
        let counters =
            isTOTP
            ? CodeWindow.steps(after: factor.counter, period: factor.period ?? 30, at: now)
            : CodeWindow.counters(from: factor.counter)
        let found = CodeWindow.match(
            code, in: counters, secret: secret, algorithm: factor.algorithm, digits: factor.digits)
        // The counter of an app is the last accepted step, that of a token the next one.
        return found.map { isTOTP ? $0 : $0 + 1 }
    }

    /// The refusal of a code of a user who is not active.
    private static func stopped(_ state: UserState) -> Refusal {
        switch state {
        case .disabled: .disabled
        case .expired: .userExpired
        default:
            .forbidden(
                LocalizedText(
                    "The user is \(state.rawValue): no code is checked",
                    de: "Der Benutzer ist \(state.rawValue): Es wird kein Code geprüft"))
        }
    }

    private func record(_ outcome: CodeOutcome, _ user: UserRow, _ website: Website, _ suspects: [CodeFactor]) {
        metrics.handedIn(outcome)
        log.info(
            "code.handed_in",
            [
                .website: website.name, .user: user.id.text, .outcome: outcome.rawValue,
                .factor: suspects.map(\.kind.rawValue).joined(separator: ","),
            ])
    }
}
