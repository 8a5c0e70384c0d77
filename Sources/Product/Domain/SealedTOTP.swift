import Bytes
import Crypto
import JSON
import World

/// The secret of a TOTP factor, sealed for one phone: a JWE that only the phone's agreement key
/// opens.
///
/// Invariant: website, phone and factor are in the protected header, and a part of the derivation
/// of the key (`apu`, `apv`). A JWE for another phone, website or factor is therefore not opened.
public enum SealedTOTP {
    public static let type = "twoefay-secret+jwe"

    /// The parties of the agreement.
    ///
    /// - Parameter audience: the relay's origin, `#`, and the website's name.
    public static func parties(audience: String, device: DeviceID, factor: FactorID) -> JWE.Parties {
        JWE.Parties(sender: Array(audience.utf8), recipient: Array("\(device.text).\(factor.text)".utf8))
    }

    /// Seals a secret, with the parameters by which codes are computed from it.
    public static func seal(
        _ secret: Secret, algorithm: OTPAlgorithm, digits: Int, period: Int, of factor: FactorID,
        for device: DeviceID, _ key: P256PublicKey, audience: String, randomness: any Randomness
    ) throws(CryptoFailure) -> String {
        var plaintext = JSONWriter.write(
            .object([
                "v": 1, "secret": .string(Base32.encode(secret.reveal())), "algorithm": .string(algorithm.rawValue),
                "digits": .integer(Int64(digits)), "period": .integer(Int64(period)),
            ]))
        defer { Wiping.wipe(&plaintext) }
        return try JWE.seal(
            Secret(plaintext), to: key, between: parties(audience: audience, device: device, factor: factor),
            header: [
                "typ": .string(type), "aud": .string(audience), "kid": .string(device.text),
                "factor": .string(factor.text),
            ], randomness: randomness)
    }
}
