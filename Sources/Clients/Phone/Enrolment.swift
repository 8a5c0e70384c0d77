import Bytes
import Crypto
import HTTP
import JSON
import World

/// A phone's enrolment at one website: its key, which has no other use, and the values that the
/// relay returned.
public struct Enrolment: Sendable {
    public enum State: Sendable {
        /// The phone is not bound yet. The code is used up and deleted when the relay confirms the
        /// binding.
        case asked(code: String, websiteKey: Secret?)
        /// The phone is bound.
        ///
        /// - Parameters:
        ///   - device: the id of the phone at the relay.
        ///   - certificate: the phone's client certificate; nil as long as the authority of the
        ///     phones has issued none. The phone then uses DPoP.
        case bound(device: String, certificate: Certificate?)
    }

    public enum Platform: String, Sendable, CaseIterable {
        case ios, android, web, other
    }

    /// The environment of the push service that assigned the device token.
    public enum PushService: String, Sendable, CaseIterable {
        case production, sandbox
    }

    public let relay: WebAddress
    /// The SHA-256 of the public key of the relay's authority.
    public internal(set) var pin: [UInt8]
    /// The pin of the authority that follows, as the present one has stated; nil without one.
    public internal(set) var nextPin: [UInt8]?
    /// The number of the last statement about pins that the phone took; 0 if it took none.
    public internal(set) var pinSequence: Int64 = 0
    public let website: String
    /// The opaque id of the user.
    public let token: String
    public let key: P256PrivateKey
    /// The key to which the relay seals secrets for this phone. It signs nothing. It is nil for a
    /// phone that was bound without one.
    public let agreementKey: P256PrivateKey?
    /// The secret of the codes that this phone shows; nil until it was fetched.
    public var codes: PhoneCodes?
    /// The keys with tagged certificates, which sign documents.
    public var documentKeys: [DocumentKey] = []
    /// The keys by tag for which a certificate was requested and has not arrived.
    public var nextDocumentKeys: [String: P256PrivateKey] = [:]
    /// The requests for certificates that have not arrived.
    public var openRequests = OpenRequests()
    /// The device token of the push service; nil if the phone polls the relay.
    public var pushToken: String?
    public var name: String?
    public let platform: Platform
    public let environment: PushService
    public let madeAt: Timestamp
    /// The relay's clock minus the phone's clock, as the relay has signed it; zero if it was not
    /// asked. Only for proofs and codes of this relay.
    public var clockOffset = Duration.zero
    /// The simulated platform that attests the key and the answers; nil without attestations.
    public var platformAttests: SimulatedPlatform?
    /// The relay's verdict on the attestation: `valid`, `flawed`, `invalid` or `missing`; nil if
    /// attestations do not count at this website.
    public var verdict: String?
    /// The secret from which the keys of the PIN and PUK are derived; nil until a PIN is set.
    public var pinSecret: PINSecret?
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
        agreementKey = try P256PrivateKey.generate(randomness)
        self.pushToken = pushToken
        self.name = name
        self.platform = platform
        self.environment = environment
        madeAt = now
        state = .asked(code: activation.code, websiteKey: activation.websiteKey)
    }

    /// The audience of everything that this phone signs. No other relay or website accepts it.
    public var audience: String { "\(relay.text)#\(website)" }

    /// The thumbprint of the key (RFC 7638), which identifies the phone before it has a device id.
    public var thumbprint: String { key.publicKey.thumbprint }

    /// The id of the phone; nil until it is bound.
    public var device: String? {
        if case .bound(let device, _) = state { device } else { nil }
    }

    /// The phone's client certificate; nil until it is bound.
    public var certificate: Certificate? {
        if case .bound(_, let certificate) = state { certificate } else { nil }
    }

    /// A certificate request for the key, in PEM. It asks for the name of the phone, once the phone
    /// knows its id: an authority outside of the installation issues only that. Before, its common
    /// name is the key's thumbprint.
    func certificateRequest() throws(CryptoFailure) -> String {
        guard let device else {
            return String(decoding: try SigningRequest(commonName: thumbprint, key: key).pem(), as: UTF8.self)
        }
        let name = CertificateName(uri: "twoefay:device:\(device)")
        return String(decoding: try SigningRequest(name, key: key).pem(), as: UTF8.self)
    }

    /// Whether this enrolment is an attempt to use exactly this activation.
    public func isFor(_ activation: ActivationURI) -> Bool {
        guard case .asked(let code, _) = state else { return false }
        return code == activation.code && relay == activation.relay && website == activation.website
            && token == activation.token && pin == activation.pin
    }
}

/// Stores an enrolment as JSON. The text contains the private key: anyone who reads it can act as
/// the phone.
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
        if let agreementKey { object.set("agreement_key", text(try agreementKey.pem().reveal())) }
        if let codes { object.set("codes", .object(codes.json)) }
        if !documentKeys.isEmpty {
            var keys: [JSONValue] = []
            for key in documentKeys { keys.append(.object(try key.json())) }
            object.set("document_keys", .array(keys))
        }
        if !nextDocumentKeys.isEmpty {
            var keys: JSONObject = [:]
            for (tag, key) in nextDocumentKeys.sorted(by: { $0.key < $1.key }) {
                keys.set(tag, text(try key.pem().reveal()))
            }
            object.set("next_document_keys", .object(keys))
        }
        if !openRequests.isEmpty { object.set("open_requests", .object(openRequests.json)) }
        object.set("next_pin", nextPin.map { .string(Base64URL.encode($0)) })
        if pinSequence > 0 { object.set("pin_sequence", .integer(pinSequence)) }
        if let pushToken { object.set("dev_token", .string(pushToken)) }
        if let name { object.set("name", .string(name)) }
        if let platformAttests { object.set("simulated", .object(try platformAttests.json())) }
        object.set("attestation", verdict.map { .string($0) })
        object.set("pin_secret", pinSecret.map { .string(Base64URL.encode($0.bytes.reveal())) })
        if clockOffset != .zero { object.set("clock_offset", .integer(clockOffset.wholeMilliseconds)) }
        switch state {
        case .asked(let code, let websiteKey):
            object.set("activation_code", .string(code))
            if let websiteKey { object.set("k", .string(Base64URL.encode(websiteKey.reveal()))) }
        case .bound(let device, let certificate):
            object.set("device", .string(device))
            if let certificate { object.set("certificate", text(try certificate.pem())) }
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
        guard let object = value.object else { throw Malformed(description: "it is not a JSON object") }
        try self.init(object)
    }

    init(_ object: JSONObject) throws(Malformed) {
        func text(_ name: String) throws(Malformed) -> String {
            guard let text = object[name]?.string else { throw Malformed(description: "\(name) is missing") }
            return text
        }
        guard object["v"]?.integer == Self.version else {
            throw Malformed(description: "its version is not \(Self.version)")
        }
        guard let relay = WebAddress(try text("relay")), let pin = Base64URL.decode(try text("pin")), pin.count == 32,
            let madeAt = Timestamp(rfc3339: try text("made_at")),
            let platform = Platform(rawValue: try text("platform")),
            let environment = PushService(rawValue: try text("environment"))
        else { throw Malformed(description: "relay, pin, made_at, platform or environment is not valid") }
        self.relay = relay
        self.pin = pin
        nextPin = object["next_pin"]?.string.flatMap { Base64URL.decode($0) }.flatMap { $0.count == 32 ? $0 : nil }
        pinSequence = object["pin_sequence"]?.integer ?? 0
        self.madeAt = madeAt
        website = try text("website")
        token = try text("token")
        pushToken = object["dev_token"]?.string
        self.platform = platform
        self.environment = environment
        name = object["name"]?.string
        clockOffset = .milliseconds(object["clock_offset"]?.integer ?? 0)
        verdict = object["attestation"]?.string
        pinSecret = object["pin_secret"]?.string.flatMap { Base64URL.decode($0) }.flatMap { PINSecret($0) }
        openRequests = object["open_requests"]?.object.map { OpenRequests($0) } ?? OpenRequests()
        codes = try object["codes"]?.object.map { stored throws(Malformed) in
            guard let codes = PhoneCodes(stored) else { throw Malformed(description: "codes is not valid") }
            return codes
        }
        do throws(CryptoFailure) {
            platformAttests = try object["simulated"]?.object.flatMap { stored throws(CryptoFailure) in
                try SimulatedPlatform(stored)
            }
            key = try P256PrivateKey(pem: Secret(utf8: object["key"]?.string ?? ""))
            agreementKey = try object["agreement_key"]?.string.map { pem throws(CryptoFailure) in
                try P256PrivateKey(pem: Secret(utf8: pem))
            }
            for stored in object["document_keys"]?.array ?? [] {
                documentKeys.append(try DocumentKey(stored.object ?? [:]))
            }
            for member in object["next_document_keys"]?.object?.members ?? [] {
                nextDocumentKeys[member.name] = try P256PrivateKey(pem: Secret(utf8: member.value.string ?? ""))
            }
            if let device = object["device"]?.string {
                var certificate: Certificate?
                if let pem = object["certificate"]?.string { certificate = try Certificate(pem: Array(pem.utf8)) }
                if let certificate, certificate.spkiThumbprint != key.publicKey.spkiThumbprint {
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
