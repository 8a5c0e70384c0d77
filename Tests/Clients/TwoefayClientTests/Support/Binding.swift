import Bytes
import Crypto
import JSON
import TwoefayClient

/// One honest binding, every part of which a test can turn into a lie.
struct Binding {
    static let token = "6f0c6f0c6f0c6f0c6f0c6f0c6f0c6f0c"

    let key: P256PrivateKey
    /// What the website put into the QR, and what the code was really made with.
    var k = Secret([UInt8](repeating: 0x5a, count: 32))
    var usedK = Secret([UInt8](repeating: 0x5a, count: 32))
    var type: String? = "twoefay-binding+jwt"
    var claims: JSONObject
    /// The key that the relay reports.
    var told: P256PublicKey

    init() throws {
        key = try P256PrivateKey.generate()
        told = key.publicKey
        claims = [
            "v": 1, "aud": .string("\(Login.origin)#shop"), "id_token": .string(Self.token),
            "jwk": .object(key.publicKey.jwk),
        ]
    }

    var device: JSONObject {
        var header: JSONObject = [:]
        header.set("typ", type.map { .string($0) })
        return [
            "device": "d1", "name": "Phone", "state": "active", "jwk": .object(told.jwk),
            "binding": .string(JWS.sign(header: header, payload: JSONWriter.write(claims), secret: usedK)),
        ]
    }

    /// What the website's check makes of it.
    func pinned() throws(BindingFault) -> PinnedPhone {
        try BindingCheck(origin: Login.origin, website: "shop").pinned(device, token: Self.token, k: k)
    }
}
