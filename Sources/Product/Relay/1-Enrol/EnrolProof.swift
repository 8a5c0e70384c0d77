import Crypto
import Domain
import JSON

/// The JWS with which a phone proves that it holds its new key and knows its activation code.
enum EnrolProof {
    /// Returns the proven key; nil if anything is wrong.
    ///
    /// - Parameter signed: the certificate request of the phone, which must have the same key.
    static func key(
        _ request: BindRequest, signed: SigningRequest?, origin: String, website: String
    ) -> P256PublicKey? {
        guard let object = try? JWS.parse(request.proof, maxBytes: 8192),
            object.header["typ"]?.string == "twoefay-enrol+jwt", let jwk = object.header["jwk"],
            let key = try? P256PublicKey(jwk: jwk), object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object,
            claims["v"]?.integer == 1, claims["aud"]?.string == "\(origin)#\(website)",
            claims["id_token"]?.string == request.token.text,
            claims["activation_code"]?.string == request.activationCode,
            // A missing device token and an empty one mean the same in the request and in the
            // proof: the phone polls by itself.
            (claims["dev_token"] ?? "").string == request.pushToken, claims["iat"]?.integer != nil,
            signed == nil || signed?.key == key
        else { return nil }
        return key
    }
}
