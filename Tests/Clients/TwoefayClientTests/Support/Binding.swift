import Bytes
import Crypto
import JSON
import TwoefayClient

/// A valid binding, each part of which a test can falsify.
struct Binding {
    static let token = "6f0c6f0c6f0c6f0c6f0c6f0c6f0c6f0c"

    let key: P256PrivateKey
    /// The secret that the website put into the QR code, and the secret that signs the binding.
    var k = Secret([UInt8](repeating: 0x5a, count: 32))
    var usedK = Secret([UInt8](repeating: 0x5a, count: 32))
    var type: String? = "twoefay-binding+jwt"
    var claims: JSONObject
    /// The key that the relay reports.
    var reported: P256PublicKey

    init() throws {
        key = try P256PrivateKey.generate()
        reported = key.publicKey
        claims = [
            "v": 1, "aud": .string("\(Login.origin)#shop"), "id_token": .string(Self.token),
            "jwk": .object(key.publicKey.jwk),
        ]
    }

    var device: JSONObject {
        var header: JSONObject = [:]
        header.set("typ", type.map { .string($0) })
        return [
            "device": "d1", "name": "Phone", "state": "active", "jwk": .object(reported.jwk),
            "binding": .string(JWS.sign(header: header, payload: JSONWriter.write(claims), secret: usedK)),
        ]
    }

    /// Returns the result of the website's check.
    func pinned() throws(BindingFault) -> PinnedPhone {
        try BindingCheck(origin: Login.origin, website: "shop").pinned(device, token: Self.token, k: k)
    }
}
