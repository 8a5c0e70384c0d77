import Bytes
import Crypto
import JSON

/// A phone of one user, and the key that its receipts must be signed with. The website keeps it: what it keeps is `key`
/// as 65 bytes or as a JWK, beside the user.
public struct PinnedPhone: Sendable, Equatable {
    public let device: String
    public let key: P256PublicKey

    /// From what the website kept.
    public init(device: String, key: P256PublicKey) {
        self.device = device
        self.key = key
    }
}

/// Which check a binding failed. The key is not to be pinned then, and the phone not to be used.
public enum BindingFault: Error, Sendable, Equatable {
    /// An entry of `devices[]` without id, key or binding. A phone that got no `k` sends no binding: such a key can only
    /// be pinned on the relay's word, the first time it is seen.
    case incomplete
    case malformed(String)
    /// Not made with this website's `k`, or changed since.
    case code
    case type
    case claims
    case audience
    /// For another user.
    case token
    /// The relay says that the phone has another key than the phone says itself.
    case key
}

extension BindingFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .incomplete: "the device lacks its id, its key or its binding"
        case .malformed(let why): why
        case .code: "the binding was not made with the k of this activation"
        case .type: "the JWS is no binding"
        case .claims: "the binding lacks claims, or has a version that is not known here"
        case .audience: "the binding is for another website, or from another relay"
        case .token: "the binding is for another user"
        case .key: "the relay reports another key than the phone does"
        }
    }
}

/// Pins the key of a phone without trusting the relay: the phone read `k` from the QR that the website drew itself, and
/// made a code with it over its own key.
public struct BindingCheck: Sendable {
    private let audience: String

    public init(origin: String, website: String) { audience = "\(origin)#\(website)" }

    /// - Parameters:
    ///   - device: an entry of `devices[]` in the answer of /user/NAME.
    ///   - token: the user's, as /register answered.
    ///   - k: what the website added to the activation URI, 256 bits, for this one activation.
    public func pinned(
        _ device: JSONObject, token: String, k: Secret
    ) throws(BindingFault) -> PinnedPhone {
        guard let id = device["device"]?.string, let told = device["jwk"], let binding = device["binding"]?.string
        else { throw .incomplete }
        let object: JWSObject
        do throws(JWSError) {
            object = try JWS.parse(binding, algorithm: .hs256)
        } catch {
            throw .malformed(error.description)
        }
        // HMAC pads a short key with nothing: what is no secret proves nothing.
        guard k.count >= 32, object.verify(k) else { throw .code }
        guard let type = object.type, type.isExactly("twoefay-binding+jwt") else { throw .type }
        guard let claims = (try? JSONReader.read(object.payload))?.object, claims["v"]?.integer == 1,
            let audience = claims["aud"]?.string, let bound = claims["id_token"]?.string,
            let jwk = claims["jwk"], let key = try? P256PublicKey(jwk: jwk)
        else { throw .claims }
        guard audience.isExactly(self.audience) else { throw .audience }
        guard bound.isExactly(token) else { throw .token }
        guard let relayed = try? P256PublicKey(jwk: told), relayed == key else { throw .key }
        return PinnedPhone(device: id, key: key)
    }
}
