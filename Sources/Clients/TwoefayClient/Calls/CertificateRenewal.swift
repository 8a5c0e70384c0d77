import JSON
import World

extension RelayClient {
    /// A new certificate of this website.
    public struct RenewedCertificate: Sendable, Equatable {
        /// The certificate, in PEM.
        public let certificate: String
        /// The time at which the certificate expires.
        public let expiresAt: Timestamp
    }

    /// Renews the certificate of this website for the same key, if the operator permits it. Connect
    /// with the new one from then on; the former one stays valid until it expires.
    ///
    /// - Parameter request: a certificate request (PKCS #10) of the present key, in PEM.
    public func renewCertificate(request: String) async throws(CallFault) -> RenewedCertificate {
        let answer = try await call("POST", "/website/certificate", ["csr": .string(request)])
        return RenewedCertificate(
            certificate: try answer.text("certificate"), expiresAt: try answer.timestamp("expires_at"))
    }
}
