import JSON
import World

/// Calls for the code factors: authenticator apps, hardware tokens and recovery codes.
extension RelayClient {
    /// The secret of a new authenticator app. The relay shows it only once.
    public struct TOTPSetup: Sendable, Equatable {
        /// The secret in base32.
        public let secret: String
        /// The `otpauth` URI, for display as a QR code.
        public let uri: String
        /// The QR code of `uri`, as SVG.
        public let qr: String
        /// The time by which the user must confirm the app with its first code.
        public let expiresAt: Timestamp
    }

    /// The parameters of the codes of an app or token; nil for the relay's default.
    public struct CodeShape: Sendable, Equatable {
        /// The hash algorithm: `SHA1`, `SHA256` or `SHA512`.
        public var algorithm: String?
        /// The number of digits of a code.
        public var digits: Int64?
        /// The time step of TOTP, in seconds.
        public var period: Int64?

        /// Creates parameters. The relay chooses those that are nil.
        public init(algorithm: String? = nil, digits: Int64? = nil, period: Int64? = nil) {
            self.algorithm = algorithm
            self.digits = digits
            self.period = period
        }

        func add(to body: inout JSONObject) {
            body.set("algorithm", algorithm.map { .string($0) })
            body.set("digits", digits.map { .integer($0) })
            body.set("period", period.map { .integer($0) })
        }
    }

    /// Adds an authenticator app, which counts as a factor after `confirmTOTP`.
    ///
    /// - Parameters:
    ///   - code: a code of the present app, which the new one is to replace. It is needed if the
    ///     policy is `further-factors: website`; otherwise the user approves.
    ///   - approval: the challenge with which the user approved, after `.approvalRequired`.
    public func addTOTP(
        for username: String, _ shape: CodeShape = CodeShape(), code: String? = nil, approval: String? = nil
    ) async throws(CallFault) -> TOTPSetup {
        var body = Self.body(approval)
        shape.add(to: &body)
        body.set("otp", code.map { .string($0) })
        return try Self.setup(try await call("POST", Self.path(username, "totp"), body))
    }

    static func setup(_ answer: JSONObject) throws(CallFault) -> TOTPSetup {
        TOTPSetup(
            secret: try answer.text("secret"), uri: try answer.text("uri"), qr: try answer.text("qr"),
            expiresAt: try answer.timestamp("expires_at"))
    }

    /// Confirms the app with its first code. From then on the app is a factor of the user.
    ///
    /// - Returns: false for a wrong code, which the relay adds to the failure count.
    public func confirmTOTP(of username: String, code: String) async throws(CallFault) -> Bool {
        try await call("POST", Self.path(username, "totp", "confirm"), ["otp": .string(code)]).flag("confirmed")
    }

    /// Removes the user's authenticator app.
    public func dropTOTP(of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "totp"))
    }

    /// Adds a hardware token, which is a factor of the user at once.
    ///
    /// - Parameters:
    ///   - secret: the secret in base32, as in `TOTPSetup.secret`.
    ///   - counter: the counter of the token.
    ///   - approval: the challenge with which the user approved, after `.approvalRequired`.
    public func addHOTP(
        for username: String, secret: String, counter: Int64 = 0, _ shape: CodeShape = CodeShape(),
        approval: String? = nil
    ) async throws(CallFault) {
        var body = Self.body(approval)
        body["secret"] = .string(secret)
        body["counter"] = .integer(counter)
        shape.add(to: &body)
        try await call("POST", Self.path(username, "hotp"), body)
    }

    /// Resynchronises a token whose counter is too far ahead because its button was pressed too
    /// often.
    ///
    /// - Parameter codes: two consecutive codes of the token.
    /// - Returns: false if the two are not consecutive codes, which the relay adds to the failure
    ///   count.
    public func resynchroniseHOTP(of username: String, codes: (String, String)) async throws(CallFault) -> Bool {
        try await call(
            "POST", Self.path(username, "hotp", "resync"), ["otps": [.string(codes.0), .string(codes.1)]]
        ).flag("resynced")
    }

    /// Checks a code of the user's app or hardware token outside a login, and uses it up.
    ///
    /// A wrong code counts in the budget that all codes of the user share, as at a login.
    ///
    /// - Returns: the factor that the code belongs to; nil if the code is wrong.
    public func verify(_ code: String, of username: String) async throws(CallFault) -> Factor? {
        try await verify(["username": .string(username), "otp": .string(code)])
    }

    /// Checks a code of the user of a phone.
    public func verify(_ code: String, ofUserOf device: String) async throws(CallFault) -> Factor? {
        try await verify(["device": .string(device), "otp": .string(code)])
    }

    private func verify(_ body: JSONObject) async throws(CallFault) -> Factor? {
        let answer = try await call("POST", "/verify-otp", body)
        return try answer.flag("valid") ? answer.word("factor") : nil
    }

    /// Removes the user's hardware token.
    public func dropHOTP(of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "hotp"))
    }

    /// New recovery codes.
    public struct RecoveryCodes: Sendable, Equatable {
        /// Ten codes for the user to print.
        public let codes: [String]
        /// The position, from 1, of the code that the user must type back before the codes count;
        /// nil if they count at once. See `confirmRecoveryCodes`.
        public let position: Int64?
    }

    /// Creates ten recovery codes for the user to print. The relay shows them only once, and
    /// earlier recovery codes become invalid: at once, or under the policy `recovery-check` when
    /// the new ones are confirmed.
    public func recoveryCodes(for username: String, approval: String? = nil) async throws(CallFault) -> RecoveryCodes {
        let answer = try await call("POST", Self.path(username, "recovery-codes"), Self.body(approval))
        return RecoveryCodes(codes: try answer.texts("codes"), position: answer["position"]?.integer)
    }

    /// Confirms that the user wrote the recovery codes down.
    ///
    /// - Parameter code: the code at the asked position, as the user types it. It stays usable.
    /// - Returns: false for a wrong code, which the relay adds to the failure count.
    public func confirmRecoveryCodes(of username: String, code: String) async throws(CallFault) -> Bool {
        try await call("POST", Self.path(username, "recovery-codes", "confirm"), ["otp": .string(code)])
            .flag("confirmed")
    }
}
