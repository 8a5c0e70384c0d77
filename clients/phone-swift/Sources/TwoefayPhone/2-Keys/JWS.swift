/// A JSON Web Signature in compact form (RFC 7515).
public struct JWS: Sendable {
    public let header: JSONObject
    public let claims: JSONObject
    /// The first two parts with the dot between them, which the signature covers.
    public let input: [UInt8]
    public let signature: [UInt8]

    /// Reads a JWS; nil if the header or the claims are no object of I-JSON. Nothing is verified.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]).flatMap(JSONReader.object),
            let claims = Base64URL.decode(parts[1]).flatMap(JSONReader.object),
            let signature = Base64URL.decode(parts[2])
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        input = Array("\(parts[0]).\(parts[1])".utf8)
    }

    /// Whether the JWS has this type and is signed by this key. The algorithm is that of the key:
    /// the header cannot choose it.
    public func isSigned(as type: String, by key: VerificationKey, _ cryptography: any Cryptography) -> Bool {
        header.has("typ", type) && header.has("alg", key.algorithm.rawValue) && header["crit"] == nil
            && cryptography.isValid(signature, of: input, by: key)
    }

    /// Signs claims with a key of the phone.
    ///
    /// - Parameter key: the member of the header that names the key: `jwk` or `kid`.
    public static func sign(
        _ type: String, _ name: (name: String, value: JSONValue), _ claims: JSONObject, by key: any SigningKey
    ) throws -> String {
        var header: JSONObject = ["alg": "ES256", "typ": .string(type)]
        header[name.name] = name.value
        let input = "\(Base64URL.encode(header.bytes)).\(Base64URL.encode(claims.bytes))"
        return "\(input).\(Base64URL.encode(try key.sign(Array(input.utf8))))"
    }

    /// Authenticates claims by HMAC with SHA-256 (`HS256`).
    public static func authenticate(
        _ type: String, _ claims: JSONObject, key: [UInt8], _ cryptography: any Cryptography
    ) -> String {
        let header: JSONObject = ["alg": "HS256", "typ": .string(type)]
        let input = "\(Base64URL.encode(header.bytes)).\(Base64URL.encode(claims.bytes))"
        return "\(input).\(Base64URL.encode(cryptography.hmac(.sha256, key: key, Array(input.utf8))))"
    }

    /// Signs the first two parts of a JWS with the key of a PIN or PUK.
    public static func signature(beside jws: String, by key: any SigningKey) throws -> String {
        let input = jws.split(separator: ".", omittingEmptySubsequences: false).dropLast().joined(separator: ".")
        return Base64URL.encode(try key.sign(Array(input.utf8)))
    }
}
