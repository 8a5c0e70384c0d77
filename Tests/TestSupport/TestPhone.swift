import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import World

/// The device side as the wire describes it, written from the wire and not from the relay.
public final class TestPhone: Sendable {
    public let key: P256PrivateKey
    public let pushToken: String

    public init(pushToken: String, key: P256PrivateKey? = nil) throws {
        self.key = try key ?? P256PrivateKey.generate()
        self.pushToken = pushToken
    }

    /// The `twoefay-enrol+jwt` of a phone that wants to be bound.
    public func proof(
        token: String, code: String, origin: String, website: String, at now: Timestamp,
        change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var claims: JSONObject = [
            "v": .integer(1), "aud": .string("\(origin)#\(website)"), "id_token": .string(token),
            "activation_code": .string(code), "dev_token": .string(pushToken), "iat": .integer(now.seconds),
        ]
        change(&claims)
        return try JWS.sign(
            header: ["typ": "twoefay-enrol+jwt", "jwk": .object(key.publicKey.jwk)],
            payload: JSONWriter.write(.object(claims)), key: key)
    }

    /// What TLS would say of the certificate that the relay gave this phone.
    public func certificate(device: DeviceID) -> ClientCertificate {
        ClientCertificate(
            authority: .phones, uris: ["twoefay:device:\(device.text)"], keyThumbprint: key.publicKey.spkiThumbprint)
    }
}
