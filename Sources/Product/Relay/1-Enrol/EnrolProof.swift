import Attestation
import Crypto
import Domain
import JSON

/// The JWS with which a phone proves that it holds its new key and knows its activation code.
enum EnrolProof {
    /// The keys of a phone: the proven key, which signs, and the key to which secrets are sealed.
    struct Keys: Equatable {
        let signing: P256PublicKey
        /// The key named in the claim `agreement`; nil if the phone names none.
        let agreement: P256PublicKey?
        /// The claims of a page about its app; nil for a native phone.
        let web: WebPhone?
    }

    /// Returns the keys of the phone; nil if anything is wrong.
    ///
    /// - Parameter signed: the certificate request of the phone, which must have the same key.
    static func keys(
        _ request: BindRequest, signed: SigningRequest?, origin: String, website: String
    ) -> Keys? {
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
        // A page says so by its platform, too, on which its rights depend.
        guard let web = try? Optional(WebPhone(claims: claims)), web == nil || request.platform == .web,
            // A key has one purpose: the phone's own is no credential.
            web?.passkey?.key != key
        else {
            return nil
        }
        guard let jwk = claims["agreement"] else { return Keys(signing: key, agreement: nil, web: web) }
        // A key has one purpose: one that signs must not agree on secrets.
        guard let agreement = try? P256PublicKey(agreementJWK: jwk), agreement != key else { return nil }
        return Keys(signing: key, agreement: agreement, web: web)
    }
}
