import Bytes
import JSON
import World

/// The reason why a text is not opened as a JWE.
public enum JWEError: Error, Sendable, Equatable {
    case tooLong
    /// It does not have five parts of base64url, of which the second is empty.
    case malformed
    /// The header is not JSON, or has a member that must be understood, and is not.
    case header
    /// It is not made by ECDH-ES and A256GCM.
    case algorithm
    /// It names other parties than the expected ones.
    case parties
    /// It was made for another key, or changed.
    case tampered
}

/// JWE in compact form (RFC 7516), by the single pair of algorithms that this project uses: ECDH-ES
/// on P-256 in direct agreement, and A256GCM (RFC 7518, §4.6 and §5.3).
///
/// Whoever holds the recipient's private key can open it. Nobody proves who made it: a caller that
/// must know gets the JWE over a connection that says so, or inside of a signature. Both parties
/// are part of the key's derivation (`apu`, `apv`), so a JWE for one purpose cannot be opened for
/// another one. Tests: `JWETests`.
public enum JWE {
    /// The names of both sides, as bytes that never occur in another role.
    public struct Parties: Sendable, Equatable {
        public let sender: [UInt8]
        public let recipient: [UInt8]

        public init(sender: [UInt8], recipient: [UInt8]) {
            self.sender = sender
            self.recipient = recipient
        }
    }

    static let encryption = "A256GCM"
    private static let agreement = "ECDH-ES"

    /// Encrypts for the holder of a key.
    ///
    /// - Parameter header: further members of the protected header, such as `typ`.
    public static func seal(
        _ plaintext: Secret, to recipient: P256PublicKey, between parties: Parties, header: JSONObject = [:],
        randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) -> String {
        let ephemeral = try P256PrivateKey.generate(randomness)
        var whole: JSONObject = [
            "alg": .string(agreement), "enc": .string(encryption), "epk": .object(ephemeral.publicKey.jwk),
            "apu": .string(Base64URL.encode(parties.sender)), "apv": .string(Base64URL.encode(parties.recipient)),
        ]
        for member in header.members where whole[member.name] == nil { whole[member.name] = member.value }
        let first = Base64URL.encode(JSONWriter.write(whole))
        let key = ConcatKDF.sha256(
            try ephemeral.agree(with: recipient), algorithm: encryption, parties: parties, count: 32)
        let nonce = randomness.bytes(12)
        let (ciphertext, tag) = try GCM.seal(
            plaintext.reveal(), key: key, nonce: nonce, authenticated: Array(first.utf8))
        return [first, "", Base64URL.encode(nonce), Base64URL.encode(ciphertext), Base64URL.encode(tag)]
            .joined(separator: ".")
    }

    /// Decrypts what was made for this key between these parties.
    ///
    /// - Returns: the protected header, and the plaintext.
    public static func open(
        _ compact: String, with key: P256PrivateKey, between parties: Parties, maxBytes: Int = 16_384
    ) throws(JWEError) -> (header: JSONObject, plaintext: Secret) {
        guard compact.utf8.count <= maxBytes else { throw .tooLong }
        let parts = Array(compact.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 5, parts[1].isEmpty, let headerBytes = Base64URL.decode(utf8: parts[0]),
            let nonce = Base64URL.decode(utf8: parts[2]), nonce.count == 12,
            let ciphertext = Base64URL.decode(utf8: parts[3]),
            let tag = Base64URL.decode(utf8: parts[4]), tag.count == 16
        else { throw .malformed }
        guard let header = (try? JSONReader.read(headerBytes))?.object, header["crit"] == nil, header["zip"] == nil
        else { throw .header }
        guard header["alg"]?.string == agreement, header["enc"]?.string == encryption,
            let ephemeral = header["epk"].flatMap({ try? P256PublicKey(agreementJWK: $0) })
        else { throw .algorithm }
        guard header["apu"]?.string == Base64URL.encode(parties.sender),
            header["apv"]?.string == Base64URL.encode(parties.recipient)
        else { throw .parties }
        guard let secret = try? key.agree(with: ephemeral),
            let plaintext = GCM.open(
                ciphertext, tag: tag,
                key: ConcatKDF.sha256(secret, algorithm: encryption, parties: parties, count: 32), nonce: nonce,
                authenticated: Array(parts[0]))
        else { throw .tampered }
        return (header, Secret(plaintext))
    }
}

/// The key derivation of JWE (NIST SP 800-56A, §5.8.1, as RFC 7518 §4.6.2 profiles it), for keys
/// of one block of SHA-256 at most.
enum ConcatKDF {
    static func sha256(_ secret: Secret, algorithm: String, parties: JWE.Parties, count: Int) -> Secret {
        precondition((1...32).contains(count), "a longer key needs a second block")
        var input: [UInt8] = []
        // An array that grows leaves copies of the secret in memory.
        input.reserveCapacity(64 + secret.count + algorithm.utf8.count + parties.sender.count + parties.recipient.count)
        defer { Wiping.wipe(&input) }
        input += bigEndian(1)
        secret.withBytes { input.append(contentsOf: $0) }
        for part in [Array(algorithm.utf8), parties.sender, parties.recipient] {
            input += bigEndian(part.count) + part
        }
        input += bigEndian(count * 8)
        return Secret(Array(SHA256.hash(input).prefix(count)))
    }

    private static func bigEndian(_ number: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(number).bigEndian) { Array($0) }
    }
}
