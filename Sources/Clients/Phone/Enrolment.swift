import Bytes
import Crypto
import HTTP
import JSON
import World

/// One phone at one website: its key, which is used for nothing else, and what the relay gave for it.
public struct Enrolment: Sendable {
    public enum State: Sendable {
        /// On the way. The code is used up once the relay has said yes, and forgotten then.
        case asked(code: String, websiteKey: Secret?)
        /// - Parameter certificate: PEM.
        case bound(device: String, certificate: Certificate)
    }

    public enum Platform: String, Sendable, CaseIterable {
        case ios, android, web, other
    }

    /// Which of a push service's two worlds the push token is from.
    public enum PushService: String, Sendable, CaseIterable {
        case production, sandbox
    }

    public let relay: WebAddress
    /// SHA-256 of the key of the relay's authority.
    public let pin: [UInt8]
    public let website: String
    /// The user, as the website knows it.
    public let token: String
    public let key: P256PrivateKey
    /// Where a push service finds the phone; nil for one that asks the relay by itself.
    public var pushToken: String?
    public var name: String?
    public let platform: Platform
    public let environment: PushService
    public let madeAt: Timestamp
    public var state: State

    public init(
        _ activation: ActivationURI, pushToken: String? = nil, name: String? = nil, platform: Platform = .other,
        environment: PushService = .production, at now: Timestamp, randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) {
        relay = activation.relay
        pin = activation.pin
        website = activation.website
        token = activation.token
        key = try P256PrivateKey.generate(randomness)
        self.pushToken = pushToken
        self.name = name
        self.platform = platform
        self.environment = environment
        madeAt = now
        state = .asked(code: activation.code, websiteKey: activation.websiteKey)
    }

    /// Whom everything signed is for: no other relay and no other website can use it.
    public var audience: String { "\(relay.text)#\(website)" }

    /// What names this phone where it has no device yet: RFC 7638.
    public var thumbprint: String { key.publicKey.thumbprint }

    public var device: String? {
        if case .bound(let device, _) = state { device } else { nil }
    }

    public var certificate: Certificate? {
        if case .bound(_, let certificate) = state { certificate } else { nil }
    }

    /// Whether this is an attempt to use that very activation.
    public func isFor(_ activation: ActivationURI) -> Bool {
        guard case .asked(let code, _) = state else { return false }
        return code == activation.code && relay == activation.relay && website == activation.website
            && token == activation.token && pin == activation.pin
    }
}

/// How an enrolment is kept. The text holds the private key: whoever reads it is the phone.
extension Enrolment {
    static let version: Int64 = 1

    public struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
    }

    public func json() throws(CryptoFailure) -> JSONObject {
        func text(_ pem: [UInt8]) -> JSONValue { .string(String(decoding: pem, as: UTF8.self)) }
        var object: JSONObject = [
            "v": .integer(Self.version), "relay": .string(relay.text), "pin": .string(Base64URL.encode(pin)),
            "website": .string(website), "token": .string(token), "platform": .string(platform.rawValue),
            "environment": .string(environment.rawValue), "made_at": .string(madeAt.rfc3339),
            "key": text(try key.pem().reveal()),
        ]
        if let pushToken { object.set("dev_token", .string(pushToken)) }
        if let name { object.set("name", .string(name)) }
        switch state {
        case .asked(let code, let websiteKey):
            object.set("activation_code", .string(code))
            if let websiteKey { object.set("k", .string(Base64URL.encode(websiteKey.reveal()))) }
        case .bound(let device, let certificate):
            object.set("device", .string(device))
            object.set("certificate", text(try certificate.pem()))
        }
        return object
    }

    public init(kept bytes: [UInt8]) throws(Malformed) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.read(bytes)
        } catch {
            throw Malformed(description: error.message)
        }
        guard let object = value.object else { throw Malformed(description: "it is no JSON object") }
        try self.init(object)
    }

    init(_ object: JSONObject) throws(Malformed) {
        func text(_ name: String) throws(Malformed) -> String {
            guard let text = object[name]?.string else { throw Malformed(description: "\(name) is missing") }
            return text
        }
        guard object["v"]?.integer == Self.version else {
            throw Malformed(description: "it is of another version than \(Self.version)")
        }
        guard let relay = WebAddress(try text("relay")), let pin = Base64URL.decode(try text("pin")), pin.count == 32,
            let madeAt = Timestamp(rfc3339: try text("made_at")),
            let platform = Platform(rawValue: try text("platform")),
            let environment = PushService(rawValue: try text("environment"))
        else { throw Malformed(description: "relay, pin, made_at, platform or environment is none") }
        self.relay = relay
        self.pin = pin
        self.madeAt = madeAt
        website = try text("website")
        token = try text("token")
        pushToken = object["dev_token"]?.string
        self.platform = platform
        self.environment = environment
        name = object["name"]?.string
        do throws(CryptoFailure) {
            key = try P256PrivateKey(pem: Secret(utf8: object["key"]?.string ?? ""))
            if let device = object["device"]?.string {
                let certificate = try Certificate(pem: Array((object["certificate"]?.string ?? "").utf8))
                guard certificate.spkiThumbprint == key.publicKey.spkiThumbprint else {
                    throw CryptoFailure("the certificate is not for this key")
                }
                state = .bound(device: device, certificate: certificate)
                return
            }
        } catch {
            throw Malformed(description: error.description)
        }
        state = .asked(
            code: try text("activation_code"),
            websiteKey: object["k"]?.string.flatMap { Base64URL.decode($0) }.map { Secret($0) })
    }
}
