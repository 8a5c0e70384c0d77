import Bytes
import JSON

/// The reason why a text is not accepted as a JWS.
public enum JWSError: Error, Sendable, Equatable, CustomStringConvertible {
    case tooLong
    /// It does not have three parts of base64url.
    case malformed
    case header(HeaderFault)
    /// The algorithm in the header is not the expected one.
    case algorithm
    /// The signature does not have the length of its algorithm, such as 64 bytes for ES256.
    case signatureLength

    /// The reason why a header is refused.
    public enum HeaderFault: Sendable, Equatable {
        case json(JSONError)
        case notAnObject
        /// A member that must be understood, and is not.
        case notUnderstood(String)
    }

    public var description: String {
        switch self {
        case .tooLong: "the JWS is too long"
        case .malformed: "the JWS must have three parts in base64url"
        case .header(.json(let error)): "the header of the JWS: \(error.message)"
        case .header(.notAnObject): "the header of the JWS: it is not an object"
        case .header(.notUnderstood(let name)): "the header of the JWS: \(name) is not understood"
        case .algorithm: "the JWS has an algorithm that is not allowed here"
        case .signatureLength: "the signature of the JWS has a wrong length for its algorithm"
        }
    }
}

/// JWS in compact form (RFC 7515), with the single algorithm that the caller expects. The header
/// never chooses the algorithm. Tests: `JWSTests`.
public enum JWS {
    public enum Algorithm: String, Sendable {
        case es256 = "ES256"
        case hs256 = "HS256"
        /// Only for the keys of certificates from elsewhere (`CertificateKey`).
        case es384 = "ES384"
        case rs256 = "RS256"

        /// The numbers of bytes that a signature may have.
        fileprivate var signatureLengths: ClosedRange<Int> {
            switch self {
            case .es256: 64...64
            case .hs256: 32...32
            case .es384: 96...96
            case .rs256: 256...512
            }
        }
    }

    /// Signs a payload. `alg` is put in front of the given header.
    public static func sign(
        header: JSONObject, payload: [UInt8], key: P256PrivateKey
    ) throws(CryptoFailure) -> String {
        let input = signingInput(.es256, header, payload)
        return input + "." + Base64URL.encode(try key.sign(Array(input.utf8)))
    }

    public static func sign(header: JSONObject, payload: [UInt8], secret: Secret) -> String {
        let input = signingInput(.hs256, header, payload)
        return input + "." + Base64URL.encode(HMAC.sha256(key: secret, Array(input.utf8)))
    }

    static func signingInput(_ algorithm: Algorithm, _ header: JSONObject, _ payload: [UInt8]) -> String {
        var whole: JSONObject = ["alg": .string(algorithm.rawValue)]
        for member in header.members where member.name != "alg" { whole[member.name] = member.value }
        return Base64URL.encode(JSONWriter.write(whole)) + "." + Base64URL.encode(payload)
    }

    /// Parses a JWS without verifying its signature. It refuses `crit` and `b64`, because no
    /// extension is supported.
    public static func parse(
        _ compact: String, algorithm: Algorithm = .es256, maxBytes: Int = 16_384
    ) throws(JWSError) -> JWSObject {
        guard compact.utf8.count <= maxBytes else { throw .tooLong }
        let text = Array(compact.utf8)
        let dots = text.indices.filter { text[$0] == UInt8(ascii: ".") }
        guard dots.count == 2, let headerBytes = Base64URL.decode(utf8: text[..<dots[0]]),
            let payload = Base64URL.decode(utf8: text[(dots[0] + 1)..<dots[1]]),
            let signature = Base64URL.decode(utf8: text[(dots[1] + 1)...])
        else { throw .malformed }
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.read(headerBytes)
        } catch {
            throw .header(.json(error))
        }
        guard let header = value.object else { throw .header(.notAnObject) }
        guard header["alg"]?.string == algorithm.rawValue else { throw .algorithm }
        for name in ["crit", "b64"] where header[name] != nil { throw .header(.notUnderstood(name)) }
        guard algorithm.signatureLengths.contains(signature.count) else { throw .signatureLength }
        return JWSObject(
            algorithm: algorithm, header: header, payload: payload,
            signingInput: Array(text[..<dots[1]]), signature: signature)
    }
}

/// A parsed JWS. Trust nothing in it until `verify` returns true.
public struct JWSObject: Sendable, Equatable {
    public let algorithm: JWS.Algorithm
    public let header: JSONObject
    public let payload: [UInt8]
    public let signingInput: [UInt8]
    public let signature: [UInt8]

    public var type: String? { header["typ"]?.string }
    public var keyID: String? { header["kid"]?.string }

    public func verify(_ key: P256PublicKey) -> Bool {
        algorithm == .es256 && key.verify(signature: signature, over: signingInput)
    }

    public func verify(_ secret: Secret) -> Bool {
        algorithm == .hs256 && Secret.matches(HMAC.sha256(key: secret, signingInput), signature)
    }
}
