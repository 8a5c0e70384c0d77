import JSON
import World

/// Factors that are answered by codes.
extension RelayClient {
    /// An app's secret. It is shown this once.
    public struct TOTPSetup: Sendable, Equatable {
        public let secret: String
        /// To be shown as a QR code.
        public let uri: String
        /// That QR code, as SVG.
        public let qr: String
        /// Until then the app's first code has to come.
        public let expiresAt: Timestamp
    }

    /// What the codes of a token or an app are like; nil: as they usually are.
    public struct CodeShape: Sendable, Equatable {
        /// `SHA1`, `SHA256`, `SHA512`
        public var algorithm: String?
        public var digits: Int64?
        /// Seconds.
        public var period: Int64?

        public init(algorithm: String? = nil, digits: Int64? = nil, period: Int64? = nil) {
            self.algorithm = algorithm
            self.digits = digits
            self.period = period
        }

        fileprivate func add(to body: inout JSONObject) {
            body.set("algorithm", algorithm.map { .string($0) })
            body.set("digits", digits.map { .integer($0) })
            body.set("period", period.map { .integer($0) })
        }
    }

    public func addTOTP(
        for username: String, _ shape: CodeShape = CodeShape(), approval: String? = nil
    ) async throws(CallFault) -> TOTPSetup {
        var body = Self.body(approval)
        shape.add(to: &body)
        let answer = try await call("POST", Self.path(username, "totp"), body)
        return TOTPSetup(
            secret: try answer.text("secret"), uri: try answer.text("uri"), qr: try answer.text("qr"),
            expiresAt: try answer.timestamp("expires_at"))
    }

    /// From then on the app counts.
    ///
    /// - Returns: false for a wrong code, which counts too.
    public func confirmTOTP(of username: String, code: String) async throws(CallFault) -> Bool {
        try await call("POST", Self.path(username, "totp", "confirm"), ["otp": .string(code)]).flag("confirmed")
    }

    public func dropTOTP(of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "totp"))
    }

    /// A hardware token, which counts at once.
    ///
    /// - Parameter secret: in base32, as `addTOTP` shows one.
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

    /// Finds a token again whose button was pressed too often.
    ///
    /// - Parameter codes: two, one after the other.
    /// - Returns: false where they are no two codes in a row, which counts.
    public func resynchroniseHOTP(of username: String, codes: (String, String)) async throws(CallFault) -> Bool {
        try await call(
            "POST", Self.path(username, "hotp", "resync"), ["otps": [.string(codes.0), .string(codes.1)]]
        ).flag("resynced")
    }

    public func dropHOTP(of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "hotp"))
    }

    /// Ten codes for a drawer, shown this once. Earlier ones are void.
    public func recoveryCodes(for username: String, approval: String? = nil) async throws(CallFault) -> [String] {
        try await call("POST", Self.path(username, "recovery-codes"), Self.body(approval)).texts("codes")
    }
}
