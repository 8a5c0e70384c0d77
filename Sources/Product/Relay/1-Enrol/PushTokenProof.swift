import Crypto
import Domain
import JSON

extension Relay {
    /// Refuses a device token with which its phone could never receive a push.
    func requireUsable(_ pushToken: String, of platform: Platform) throws(Refusal) {
        guard !pushToken.isEmpty, let fault = push?.fault(in: pushToken, of: platform) else { return }
        throw .invalid([FieldFault("dev_token", .format, fault)])
    }
}

/// The JWS with which a bound phone changes its device token. An empty token means that the phone
/// gets no pushes.
enum PushTokenProof {
    static let longest = 2048

    /// Returns the proven device token; nil if anything is wrong.
    static func token(_ compact: String, of device: DeviceID, key: P256PublicKey, audience: String) -> String? {
        guard let object = try? JWS.parse(compact, maxBytes: 8192), object.type == "twoefay-token+jwt",
            object.keyID == device.text, object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object,
            claims["v"]?.integer == 1, claims["aud"]?.string == audience, claims["iat"]?.integer != nil,
            let token = claims["dev_token"]?.string, token.utf8.count <= longest,
            token.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        return token
    }
}
