import Bytes
import Crypto
import JSON

/// The claims of a phone that is a page in a browser: the origin of its app, and the credential by
/// which its authenticator checks the owner. They stand in the proof of the enrolment, for the
/// relay, and in the binding, for the website. A native phone has neither.
///
/// Tests: `OwnerAssertionTests`, `RelayTests/WebAnswerTests.swift`.
public struct WebPhone: Sendable, Equatable {
    /// The longest origin, in characters.
    public static let longestApp = 128

    /// The origin of the page, such as `https://phone.example.com`.
    public let app: String
    /// The credential of the page's authenticator; nil if the page cannot check its owner.
    public let passkey: Passkey?

    /// The claims are in another form than the protocol has.
    public struct Malformed: Error {}

    public init(app: String, passkey: Passkey?) {
        self.app = app
        self.passkey = passkey
    }

    /// Reads the claims `app` and `webauthn`. Returns nil for a native phone, which has neither.
    public init?(claims: JSONObject) throws(Malformed) {
        guard let app = claims["app"] else {
            guard claims["webauthn"] == nil else { throw Malformed() }
            return nil
        }
        guard let app = app.string, let host = Self.host(of: app) else { throw Malformed() }
        self.app = app
        passkey = if let member = claims["webauthn"] { try Passkey(json: member, host: host) } else { nil }
    }

    /// Whether the page comes from one of these hosts, at whatever port. A dot at the end of a host
    /// makes no other host of it.
    public func isServed(by hosts: [String]) -> Bool {
        func plain(_ host: String) -> Substring { host.hasSuffix(".") ? host.dropLast() : host[...] }
        guard let host = Self.host(of: app) else { return false }
        return hosts.contains { plain($0) == plain(host) }
    }

    /// The host of an origin in the form of the claim: `https:`, small letters, perhaps a port, and
    /// nothing after it. Nil for any other text.
    public static func host(of origin: String) -> String? {
        let scheme = "https://"
        guard origin.hasPrefix(scheme), origin.utf8.count <= longestApp else { return nil }
        let parts = origin.utf8.dropFirst(scheme.utf8.count).split(
            separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, !host.isEmpty, host.allSatisfy(isOfHost) else { return nil }
        if parts.count == 2 {
            let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
            guard (1...5).contains(parts[1].count), parts[1].allSatisfy(isDigit) else { return nil }
        }
        return String(decoding: host, as: UTF8.self)
    }

    private static func isOfHost(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The claims, as the phone states them.
    public var json: JSONObject {
        var object: JSONObject = ["app": .string(app)]
        object.set("webauthn", passkey.map { .object($0.json) })
        return object
    }
}

/// A credential of WebAuthn that was made for one enrolment.
public struct Passkey: Sendable, Equatable {
    /// The longest id, in characters of base64url.
    public static let longestID = 256

    /// The domain for which the credential was made: the host of the page, or a parent of it.
    public let rp: String
    /// The id of the credential, in base64url.
    public let id: String
    public let key: P256PublicKey

    public init(rp: String, id: String, key: P256PublicKey) {
        self.rp = rp
        self.id = id
        self.key = key
    }

    /// - Parameter host: that of the page.
    init(json: JSONValue, host: String) throws(WebPhone.Malformed) {
        guard let object = json.object, let rp = object["rp"]?.string, let id = object["id"]?.string,
            let jwk = object["jwk"], let key = try? P256PublicKey(jwk: jwk), Self.is(rp, of: host),
            (1...Self.longestID).contains(id.utf8.count), Base64URL.decode(id) != nil
        else { throw WebPhone.Malformed() }
        self.init(rp: rp, id: id, key: key)
    }

    private static func `is`(_ rp: String, of host: String) -> Bool {
        let (domain, whole) = (Array(".\(rp)".utf8), Array(".\(host)".utf8))
        return !rp.isEmpty && whole.suffix(domain.count) == domain[...]
    }

    public var json: JSONObject { ["rp": .string(rp), "id": .string(id), "jwk": .object(key.jwk)] }
}
