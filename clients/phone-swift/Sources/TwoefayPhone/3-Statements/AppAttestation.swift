/// The attestation of the platform: App Attest on iOS (`AppAttester`).
public protocol Attester: Sendable {
    /// Creates a key for the enrolment with this id, stores its name, and attests it. Called again
    /// for an enrolment that was interrupted, it creates another key.
    ///
    /// - Parameter clientDataHash: the SHA-256 of the client data.
    /// - Returns: the member `attestation` of `/verify`.
    func attest(_ clientDataHash: [UInt8], for id: String) async throws -> JSONObject
    /// Returns an assertion over the SHA-256 of a signed decision.
    func assert(_ decisionHash: [UInt8], for id: String) async throws -> [UInt8]
}

public enum AppAttestation {
    /// The client data of the attestation of an enrolment.
    package static func clientData(
        _ enrolment: Enrolment, code: String, key: P256PublicKey, _ cryptography: any Cryptography
    ) -> [UInt8] {
        let fields = ["twoefay-attestation-v1", enrolment.audience, enrolment.token, code, key.jwk.text]
        var input: [UInt8] = []
        for field in fields {
            input += (0..<4).map { UInt8(truncatingIfNeeded: field.utf8.count >> (24 - 8 * $0)) }
            input += field.utf8
        }
        let challenge = Base64URL.encode(cryptography.sha256(input))
        let data: JSONObject = ["challenge": .string(challenge), "jkt": .string(key.thumbprint(cryptography))]
        return data.bytes
    }

    /// The member `attestation` of `/verify`.
    public static func member(keyID: String, object: [UInt8]) -> JSONObject {
        ["format": "apple-appattest", "key_id": .string(keyID), "object": .string(Base64URL.encode(object))]
    }
}
