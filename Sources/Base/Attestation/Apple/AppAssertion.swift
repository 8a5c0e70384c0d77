import Bytes
import Crypto

/// Verifies assertions of App Attest: signatures by a key that `AppAttestation` has verified. An
/// assertion proves that the same installation of the app made a request.
///
/// Tests: `AppAssertionTests`.
public enum AppAssertion {
    public static let maxBytes = 4096

    /// Returns the assertion's counter, which the caller stores, or throws the reason why the
    /// assertion proves nothing.
    ///
    /// - Parameters:
    ///   - clientDataHash: the bytes that the app passed to `generateAssertion`.
    ///   - app: the App ID that was attested.
    ///   - counter: the counter of the last accepted assertion; 0 after the attestation. The caller
    ///     must replace it in the same transaction, or two assertions pass at once.
    public static func verify(
        _ assertion: [UInt8], key: P256PublicKey, clientDataHash: [UInt8], app: String, after counter: UInt32
    ) throws(AttestationFault) -> UInt32 {
        guard assertion.count <= maxBytes else { throw .size }
        guard let object = try? CBORReader.read(assertion), object.hasExactly("signature", "authenticatorData"),
            let signature = object["signature"]?.bytes, let bytes = object["authenticatorData"]?.bytes
        else { throw .malformed }
        let data = try AuthenticatorData(assertion: bytes)
        guard data.appIDHash == SHA256.hash(Array(app.utf8)) else { throw .app }
        guard data.counter > counter else { throw .counter }
        let nonce = SHA256.hash(bytes + clientDataHash)
        guard key.verify(derSignature: signature, over: nonce) else { throw .signature }
        return data.counter
    }
}
