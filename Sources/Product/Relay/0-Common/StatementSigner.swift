import Bytes
import Crypto
import JSON
import Log
import Synchronization

/// Signs statements of the relay with the key of its server certificate.
///
/// A phone pins the authority of that certificate, and has its key from the TLS handshake. So it can
/// verify a statement without another key. The header names the certificate (`x5t#S256`), and each
/// kind of statement has its own `typ`.
public struct StatementSigner: Sendable {
    private let certificate: [UInt8]
    private let key: CertificateKey

    /// - Parameters:
    ///   - certificate: the server certificate.
    ///   - key: the key of that certificate.
    public init(certificate: Certificate, key: CertificateKey) {
        self.certificate = certificate.thumbprint
        self.key = key
    }

    func sign(_ type: String, _ claims: JSONObject) throws(CryptoFailure) -> String {
        try JWS.sign(
            header: ["typ": .string(type), "x5t#S256": .string(Base64URL.encode(certificate))],
            payload: JSONWriter.write(claims), key: key)
    }
}

extension Relay {
    /// Replaces the signer for all later statements.
    public func replace(_ signer: StatementSigner) { signers.withLock { $0 = signer } }

    /// Signs a statement of the relay.
    ///
    /// - Parameter type: the `typ` of this kind of statement.
    func sign(_ type: String, _ claims: JSONObject) throws(Refusal) -> String {
        guard let signer = signers.withLock({ $0 }) else {
            log.error("statement.unsigned", [.reason: "the relay has no key to sign with"])
            throw .broken
        }
        do {
            return try signer.sign(type, claims)
        } catch {
            log.error("statement.unsigned", [.reason: error.description])
            throw .broken
        }
    }
}
