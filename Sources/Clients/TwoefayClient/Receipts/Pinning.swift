import Attestation
import Bytes
import Crypto
import JSON

/// A phone of one user, with the key that must have signed its receipts.
///
/// The website stores the phone's id beside the user, and `key` as 65 bytes or as a JWK.
public struct PinnedPhone: Sendable, Equatable {
    /// The id of the phone.
    public let device: String
    /// The phone's public key.
    public let key: P256PublicKey
    /// The phone's key for secrets that are sealed to it; nil if its binding names none. It never
    /// signs a receipt.
    public let agreement: P256PublicKey?
    /// The claims of a page in a browser, from its binding; nil for a native phone.
    public let web: WebPhone?

    /// Restores a pinned phone from the values that the website stored.
    public init(device: String, key: P256PublicKey, agreement: P256PublicKey? = nil, web: WebPhone? = nil) {
        self.device = device
        self.key = key
        self.agreement = agreement
        self.web = web
    }

    /// Restores a pinned phone from the text that `jwk` returned; nil if it is no key.
    public init?(device: String, jwk: String) {
        guard let value = try? JSONReader.read(Array(jwk.utf8)), let key = try? P256PublicKey(jwk: value),
            let web = try? Optional(WebPhone(claims: value.object ?? [:]))
        else { return nil }
        self.init(device: device, key: key, web: web)
    }

    /// The phone's key as the text of a JWK, for a database. What a page said of itself stands in it
    /// as `app` and `webauthn`.
    public var jwk: String {
        var members = key.jwk
        for member in web?.json.members ?? [] { members.set(member.name, member.value) }
        return String(decoding: JSONWriter.write(members), as: UTF8.self)
    }
}

/// The check that a binding failed. In each case do not pin the key, and do not use the phone.
public enum BindingFault: Error, Sendable, Equatable {
    /// The entry of `devices[]` has no id or no binding.
    ///
    /// A phone that received no `k` sends no binding. In that case the website can only trust the
    /// key that the relay reports the first time.
    case incomplete
    /// The binding is not a JWS with the algorithm HS256.
    case malformed(String)
    /// The binding was not made with this website's `k`, it was changed later, or `k` is shorter
    /// than 32 bytes.
    case code
    /// The `typ` of the JWS is not `twoefay-binding+jwt`.
    case type
    /// A key is missing or invalid, or `v` is a version that this library does not know.
    case claims
    /// The binding is for another website or from another relay.
    case audience
    /// The binding is for another user.
    case token
    /// The phone is a page, and the website takes native phones only; or the other way round.
    case phone
    /// The page is not the web app that the website chose, or the relay itself serves it.
    case app
    /// The key that the relay reports differs from the key in the binding, or is missing.
    case key
}

extension BindingFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .incomplete: "the device lacks its id or its binding"
        case .malformed(let why): why
        case .code: "the binding was not made with the k of this activation"
        case .type: "the JWS is not a binding"
        case .claims: "the binding lacks a valid key, or has an unknown version"
        case .audience: "the binding is for another website, or from another relay"
        case .token: "the binding is for another user"
        case .phone: "the website does not take phones of this kind"
        case .app: "the page is not the web app of this website, or the relay serves it"
        case .key: "the relay and the phone report different keys"
        }
    }
}

/// Checks a phone's binding, so that a website can pin the phone's key without trust in the relay.
///
/// The website adds a secret `k` to the activation URI and draws the QR code itself, so the relay
/// never sees `k`. The phone reads `k` from the QR code, and makes an HMAC with it over its own
/// public key. A relay that reports another key cannot make this HMAC. Tested in
/// `PinningTests.swift`.
///
///     let k = Secret(randomness.bytes(32))
///     let uri = activation.uri(with: k)  // Draw the QR code of this, and store k with the user.
///     let check = BindingCheck(origin: origin, website: "shop")
///     let phone = try check.pinned(device, token: token, k: k)
public struct BindingCheck: Sendable {
    private let audience: String
    private let phones: AcceptedPhones
    private let app: String?
    private let relay: String?

    /// Creates a check for the bindings of one website at one relay.
    ///
    /// - Parameters:
    ///   - origin: the origin of the relay, as in its settings: `https://host:port`.
    ///   - website: the name of this website, as in its certificate.
    ///   - phones: the kind of phones that the website takes.
    ///   - app: the origin of the web app that the website chose; nil takes every page that the relay
    ///     does not serve.
    public init(origin: String, website: String, phones: AcceptedPhones = .any, app: String? = nil) {
        audience = "\(origin)#\(website)"
        self.phones = phones
        self.app = app
        relay = WebPhone.host(of: origin.lowercased())
    }

    /// Checks the binding of a phone, and returns the phone with its key.
    ///
    /// - Parameters:
    ///   - device: an entry of `devices[]` in the answer of `/user/NAME`.
    ///   - token: the user's token, as `/register` returned it.
    ///   - k: the secret of at least 32 bytes that the website added to the URI of this activation.
    public func pinned(
        _ device: JSONObject, token: String, k: Secret
    ) throws(BindingFault) -> PinnedPhone {
        try pinned(device, token: token, secrets: [k]).phone
    }

    /// Checks a binding under each of the user's open secrets. Returns the phone, and the secret that
    /// proved its key.
    func pinned(
        _ device: JSONObject, token: String, secrets: [Secret]
    ) throws(BindingFault) -> (phone: PinnedPhone, k: Secret) {
        guard let id = device["device"]?.string, let binding = device["binding"]?.string else { throw .incomplete }
        let object: JWSObject
        do throws(JWSError) {
            object = try JWS.parse(binding, algorithm: .hs256)
        } catch .signatureLength where !binding.hasSuffix(".") {
            throw .code
        } catch {
            throw .malformed(error.description)
        }
        // HMAC accepts a key of any length. A short one can be guessed, so it proves nothing.
        guard let k = secrets.first(where: { $0.count >= 32 && object.verify($0) }) else { throw .code }
        guard let type = object.type, type.isExactly("twoefay-binding+jwt") else { throw .type }
        guard let claims = (try? JSONReader.read(object.payload))?.object, claims["v"]?.integer == 1,
            let jwk = claims["jwk"], let key = try? P256PublicKey(jwk: jwk),
            let web = try? Optional(WebPhone(claims: claims))
        else { throw .claims }
        var agreement: P256PublicKey?
        if let named = claims["agreement"] {
            agreement = try? P256PublicKey(agreementJWK: named)
            guard agreement != nil else { throw .claims }
        }
        guard claims["aud"]?.string.isExactly(audience) ?? false else { throw .audience }
        guard claims["id_token"]?.string.isExactly(token) ?? false else { throw .token }
        try require(web)
        guard let told = device["jwk"], let relayed = try? P256PublicKey(jwk: told), relayed == key else { throw .key }
        // The relay must seal secrets to the key that the phone names, and to no other.
        if let used = device["agreement"], !used.isNull {
            guard let agreement, (try? P256PublicKey(agreementJWK: used)) == agreement else { throw .key }
        } else if agreement != nil {
            throw .key
        }
        return (PinnedPhone(device: id, key: key, agreement: agreement, web: web), k)
    }

    /// Refuses a phone of a kind that the website does not take. A page of the relay's own host is
    /// never pinned: the relay could read `k` there by another page.
    private func require(_ web: WebPhone?) throws(BindingFault) {
        guard let web else {
            guard phones != .web else { throw .phone }
            return
        }
        guard phones != .native else { throw .phone }
        guard relay.map({ !web.isServed(by: [$0]) }) ?? true, app.map({ $0.isExactly(web.app) }) ?? true else {
            throw .app
        }
    }
}
