import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import World

/// A phone of the tests, implemented from the wire protocol and not from the relay's code.
public final class TestPhone: Sendable {
    public let key: P256PrivateKey
    public let pushToken: String
    /// The key to which secrets are sealed; nil if the phone names none.
    public let agreement: P256PrivateKey?

    public init(pushToken: String, key: P256PrivateKey? = nil, agreement: P256PrivateKey? = nil) throws {
        self.key = try key ?? P256PrivateKey.generate()
        self.agreement = agreement
        self.pushToken = pushToken
    }

    /// Returns the `twoefay-enrol+jwt` with which the phone asks to be bound.
    public func proof(
        token: String, code: String, origin: String, website: String, at now: Timestamp,
        change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var claims: JSONObject = [
            "v": .integer(1), "aud": .string("\(origin)#\(website)"), "id_token": .string(token),
            "activation_code": .string(code), "dev_token": .string(pushToken), "iat": .integer(now.seconds),
        ]
        if let agreement { claims.set("agreement", .object(agreement.publicKey.jwk)) }
        change(&claims)
        return try JWS.sign(
            header: ["typ": "twoefay-enrol+jwt", "jwk": .object(key.publicKey.jwk)],
            payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// The data about one challenge, as `/pending` returns it.
    public struct Shown: Sendable {
        public let challenge: String
        public let nonce: String
        /// The exact bytes of the context.
        public let context: [UInt8]

        public init(challenge: String, nonce: String, context: [UInt8]) {
            self.challenge = challenge
            self.nonce = nonce
            self.context = context
        }

        func claim(_ name: String) -> JSONValue? { (try? JSONReader.read(context))?.object?[name] }
    }

    /// Returns the phone's `twoefay-decision+jwt`: `approve`, `deny` or `fraud`.
    public func decision(
        _ word: String, about shown: Shown, device: String, origin: String, number: String? = nil,
        uv: String = "none", at now: Timestamp, change: (inout JSONObject) -> Void = { _ in },
        header: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string("\(origin)#\(shown.claim("website")?.string ?? "")"),
            "challenge": .string(shown.challenge), "decision": .string(word),
            "context": .string(Base64URL.encode(SHA256.hash(shown.context))), "nonce": .string(shown.nonce),
            "uv": .string(uv), "iat": .integer(now.seconds),
        ]
        if let request = shown.claim("request") { claims.set("request", request) }
        if let number { claims.set("number", .string(number)) }
        change(&claims)
        var top: JSONObject = ["typ": "twoefay-decision+jwt", "kid": .string(device)]
        header(&top)
        return try JWS.sign(header: top, payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// Returns the value of the `DPoP` field for a request without a certificate.
    public func possession(
        _ method: String, _ url: String, nonce: String?, at now: Timestamp, id: String = UniqueText.next(),
        change: (inout JSONObject) -> Void = { _ in }, header: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var fields: JSONObject = ["typ": "dpop+jwt", "jwk": .object(key.publicKey.jwk)]
        header(&fields)
        var claims: JSONObject = [
            "htm": .string(method), "htu": .string(url), "iat": .integer(now.seconds), "jti": .string(id),
        ]
        if let nonce { claims.set("nonce", .string(nonce)) }
        change(&claims)
        return try JWS.sign(header: fields, payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// Returns the `twoefay-token+jwt` of a bound phone whose device token has changed.
    public func movedTo(
        _ pushToken: String, device: DeviceID, origin: String, website: String, at now: Timestamp,
        header: (inout JSONObject) -> Void = { _ in }, claims change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var fields: JSONObject = ["typ": "twoefay-token+jwt", "kid": .string(device.text)]
        var claims: JSONObject = [
            "v": .integer(1), "aud": .string("\(origin)#\(website)"), "dev_token": .string(pushToken),
            "iat": .integer(now.seconds),
        ]
        header(&fields)
        change(&claims)
        return try JWS.sign(header: fields, payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// Returns the `twoefay-status+jwt` with which the phone reports these values.
    public func status(
        _ values: JSONObject, device: String, origin: String, website: String, at now: Timestamp,
        header: (inout JSONObject) -> Void = { _ in }, claims change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var fields: JSONObject = ["typ": "twoefay-status+jwt", "kid": .string(device)]
        var claims: JSONObject = ["v": 1, "aud": .string("\(origin)#\(website)"), "iat": .integer(now.seconds)]
        for value in values.members { claims.set(value.name, value.value) }
        header(&fields)
        change(&claims)
        return try JWS.sign(header: fields, payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// Returns the `twoefay-secret+jwt` with which the phone asks for the secret of its codes.
    public func secretRequest(
        device: String, origin: String, website: String, at now: Timestamp,
        header: (inout JSONObject) -> Void = { _ in }, claims change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var fields: JSONObject = ["typ": "twoefay-secret+jwt", "kid": .string(device)]
        var claims: JSONObject = ["v": 1, "aud": .string("\(origin)#\(website)"), "iat": .integer(now.seconds)]
        if let agreement { claims.set("agreement", .object(agreement.publicKey.jwk)) }
        header(&fields)
        change(&claims)
        return try JWS.sign(header: fields, payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// Returns the phone's client certificate as TLS reports it.
    public func certificate(device: DeviceID) -> ClientCertificate {
        ClientCertificate(
            authority: .phones, uris: ["twoefay:device:\(device.text)"], keyThumbprint: key.publicKey.spkiThumbprint)
    }
}

/// Texts that are unique in this process.
public enum UniqueText {
    public static func next() -> String { Hex.encode(SystemRandomness().bytes(16)) }
}
