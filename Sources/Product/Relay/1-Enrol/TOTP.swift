import Bytes
import Domain
import Log
import World

/// The data with which an authenticator app is set up, shown once.
public struct TOTPSetup: Sendable, Equatable {
    /// The secret in base32.
    public let secret: String
    public let uri: String
    /// When the factor expires unless a first code has confirmed it.
    public let expiresAt: Timestamp
}

/// The parameters with which an app or token computes its codes.
public struct CodeShape: Sendable, Equatable {
    public var algorithm: OTPAlgorithm
    public var digits: Int
    /// The period of TOTP in seconds.
    public var period: Int

    /// The defaults are the values that nearly every app assumes.
    public init(algorithm: OTPAlgorithm = .sha1, digits: Int = 6, period: Int = 30) {
        self.algorithm = algorithm
        self.digits = digits
        self.period = period
    }

    public static let periods = [30, 60]
}

extension Relay {
    /// Adds a new secret for the user's app. It becomes active when a first code shows that the app
    /// has it. Until then an earlier secret stays active.
    ///
    /// - Parameter code: a code of the present app. If a website needs no approval, an active app is
    ///   replaced only with such a code, or with an approval.
    public func addTOTP(
        username: String, shape: CodeShape, code: String? = nil, approval: ChallengeID?, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> TOTPSetup {
        let user = try await user(named: username, of: website)
        let approved = try await word(toReplaceTOTPWith: code, approval, user, website, operation)
        return try await setUpTOTP(for: user, shape, .approved(approved), by: website, as: operation)
    }

    func setUpTOTP(
        for user: UserRow, _ shape: CodeShape, _ permission: FactorPermission, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> TOTPSetup {
        let now = operation.begunAt ?? time.now()
        let id: FactorID = operation.identifier("totp")
        let drawn = drawSecret()
        let use = OperationSecret.Use(.totp, user: user.id, website: website.id)
        let secret = drawn.factorSecret(.totp)
        let factor = NewFactor(
            id: id, user: user.id, kind: .totp, state: .waiting,
            sealed: try seal(secret, row: id, kind: .totp, user: user.id, website: website.id),
            algorithm: shape.algorithm, digits: shape.digits, period: shape.period, approvedBy: permission.approved,
            recovery: permission.recovery, at: now)
        let found = try await enrol(
            FactorEnrolment(
                factor, mayReplace: true, isVouchedFor: isVouchedFor(permission, website),
                secret: try stored(drawn, for: use, of: operation, at: now)), for: user, by: website, as: operation)
        let settled = try settled(drawn, for: use, of: operation, found: found)
        let text = Base32.encode(settled.factorSecret(.totp).reveal())
        return TOTPSetup(
            secret: text, uri: shape.uri(secret: text, issuer: website.displayName, account: user.username),
            expiresAt: now + Self.confirmationTime)
    }

    func isVouchedFor(_ permission: FactorPermission, _ website: Website) -> Bool {
        permission.recovery != nil || isVouchedFor(permission.approved, website)
    }

    /// Whether the user or the website has approved a new factor.
    func isVouchedFor(_ approved: Approved?, _ website: Website) -> Bool {
        approved != nil || website.policy.activationApproval != nil
    }

    /// Confirms a new app with its first code. Returns false if the code is wrong; a wrong code
    /// counts.
    public func confirmTOTP(
        username: String, code: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        let user = try await user(named: username, of: website)
        return try await trying("totp", of: user, by: website, as: operation) { factors, now in
            factors.first { $0.kind == .totp && $0.state == .waiting && !$0.isOver(at: now) }
        } check: { waiting, secret, now in
            guard OTP.isCode(code, digits: waiting.digits) else { return nil }
            let step = OTP.step(at: now, period: waiting.period ?? CodeShape().period)
            return (step - 1...step + 1).first {
                $0 > waiting.counter && waiting.accepts(code, secret: secret, counter: $0)
            }
        } write: { (waiting, failures, step, now) async throws(StoreFailure) in
            try await self.store.confirm(
                waiting, of: user.id, failures: failures, counter: step, isVouchedFor: self.isVouchedFor(nil, website),
                at: now,
                as: operation)
        }
    }

    public func drop(_ kind: Factor, username: String, by website: Website) async throws(Refusal) {
        let user = try await user(named: username, of: website)
        let operation = operations.new()
        let dropped = try await withStore("deleteFactor") { () async throws(StoreFailure) in
            try await store.drop(kind, of: user.id, by: .website, at: time.now(), as: operation)
        }
        guard dropped else { return }
        log.info(
            "factor.dropped",
            [
                .website: website.name, .user: user.id.text, .factor: kind.rawValue,
                .outcome: ChangeAuthor.website.rawValue,
            ])
        await reportEndedRecoveries(by: operation, of: user.id, website.name, .factor)
    }
}

extension OperationSecret {
    /// Derives the secret of a factor: 160 bits, as RFC 4226 §4 recommends.
    public func factorSecret(_ kind: Factor) -> Secret { Secret(derive("\(kind.rawValue) secret", count: 20)) }
}

extension CodeFactor {
    func accepts(_ typed: String, secret: Secret, counter: Int64) -> Bool {
        guard let counter = UInt64(exactly: counter) else { return false }
        return OTP.matches(typed, secret: secret, counter: counter, algorithm: algorithm, digits: digits)
    }
}

extension CodeShape {
    /// Returns the `otpauth` URI that apps read from a QR code. The names in it must not contain a
    /// colon.
    func uri(secret: String, issuer: String, account: String) -> String {
        let (issuer, account) = (Self.named(issuer), Self.named(account))
        return "otpauth://totp/\(issuer):\(account)?secret=\(secret)&issuer=\(issuer)"
            + "&algorithm=\(algorithm.rawValue.uppercased())&digits=\(digits)&period=\(period)"
    }

    private static func named(_ text: String) -> String {
        PercentEncoding.encode(text.split(separator: ":").joined(separator: " "))
    }
}
