/// A phone's enrolment at one website: what the app stores.
public struct Enrolment: Sendable, Equatable {
    public enum State: Sendable, Equatable {
        /// The phone is not bound yet. The code and the website's secret are deleted when it is.
        case begun(code: String, websiteKey: [UInt8]?)
        /// The phone is bound, and has this id at the relay.
        case bound(device: String)
    }

    public enum Platform: String, Sendable {
        case ios, android, web, other
    }

    /// The environment of Apple's push service that assigned the device token.
    public enum Environment: String, Sendable {
        case production, sandbox
    }

    /// The name of this enrolment in the app's own storage.
    public let id: String
    public let relay: RelayOrigin
    public let website: String
    public let token: String
    /// The keys of the relay's authority, one or two.
    public internal(set) var pins: [[UInt8]]
    /// The number of the last statement about pins that the phone took.
    public internal(set) var pinSequence: Int64 = 0
    /// The stored form of the key.
    public let key: [UInt8]
    /// The stored form of the key for secrets; nil for an app without codes.
    public let agreementKey: [UInt8]?
    public let platform: Platform
    public let environment: Environment
    /// The address at the push service; nil if the phone polls.
    public internal(set) var pushToken: String?
    public internal(set) var name: String?
    public internal(set) var state: State
    /// The relay's clock minus the phone's, in milliseconds. It counts for this relay only.
    public internal(set) var clockOffset: Int64 = 0
    public internal(set) var codes: PhoneCodes?
    public internal(set) var pinSecret: PINSecret?
    /// The keys for documents, by tag.
    public internal(set) var documentKeys: [String: DocumentKey] = [:]
    /// The relay's verdict on the attestation; nil if attestations do not count at the website.
    public internal(set) var verdict: String?

    /// The audience of everything that this phone signs. No other relay or website accepts it.
    public var audience: String { "\(relay.text)#\(website)" }

    /// The id of the phone at the relay; nil until it is bound.
    public var device: String? { if case .bound(let device) = state { device } else { nil } }

    package init(
        _ activation: Activation, id: String, key: [UInt8], agreementKey: [UInt8]?, options: EnrolmentOptions
    ) {
        self.id = id
        relay = activation.relay
        website = activation.website
        token = activation.token
        pins = [activation.pin]
        self.key = key
        self.agreementKey = agreementKey
        platform = options.platform
        environment = options.environment
        pushToken = options.pushToken
        name = options.name
        state = .begun(code: activation.code, websiteKey: activation.websiteKey)
    }
}

/// The choices of the app and the person at the enrolment.
public struct EnrolmentOptions: Sendable {
    public var platform: Enrolment.Platform = .ios
    public var environment: Enrolment.Environment = .production
    /// The APNs device token in hexadecimal; nil if the person allows no notifications.
    public var pushToken: String?
    public var name: String?
    /// Whether the app shows codes of the phone.
    public var hasCodes = true

    public init() {}
}

/// The stored form. It has the secrets of the enrolment, and the keys as `PhoneKeys` stores them.
extension Enrolment {
    public struct Malformed: Error, Sendable, Equatable {
        public let reason: String
    }

    public var stored: [UInt8] {
        func text(_ bytes: [UInt8]) -> JSONValue { .string(Base64URL.encode(bytes)) }
        var object: JSONObject = [
            "v": 1, "id": .string(id), "relay": .string(relay.text), "website": .string(website),
            "token": .string(token), "pins": .array(pins.map(text)), "pins_seq": .integer(pinSequence),
            "key": text(key), "platform": .string(platform.rawValue), "environment": .string(environment.rawValue),
            "clock_offset": .integer(clockOffset),
        ]
        object["agreement_key"] = agreementKey.map(text)
        object["dev_token"] = pushToken.map { .string($0) }
        object["name"] = name.map { .string($0) }
        object["codes"] = codes.map { .object($0.json) }
        object["pin_secret"] = pinSecret.map { text($0.bytes) }
        if !documentKeys.isEmpty {
            let keys = documentKeys.values.sorted { $0.tag < $1.tag }
            object["document_keys"] = .array(keys.map { .object($0.json) })
        }
        object["verdict"] = verdict.map { .string($0) }
        switch state {
        case .begun(let code, let websiteKey):
            object["activation_code"] = .string(code)
            object["k"] = websiteKey.map(text)
        case .bound(let device): object["device"] = .string(device)
        }
        return object.bytes
    }

    public init(stored: [UInt8]) throws(Malformed) {
        guard let object = JSONReader.object(stored), object["v"]?.integer == 1 else {
            throw Malformed(reason: "it is no enrolment of version 1")
        }
        func text(_ name: String) throws(Malformed) -> String {
            guard let text = object[name]?.string else { throw Malformed(reason: "\(name) is missing") }
            return text
        }
        func bytes(_ name: String) -> [UInt8]? { object[name]?.string.flatMap { Base64URL.decode($0) } }
        let pins = (object["pins"]?.array ?? []).compactMap { $0.string.flatMap { Base64URL.decode($0) } }
        guard let relay = RelayOrigin(try text("relay")), let key = bytes("key"), (1...2).contains(pins.count),
            let platform = Platform(rawValue: try text("platform")),
            let environment = Environment(rawValue: try text("environment"))
        else { throw Malformed(reason: "relay, key, pins, platform or environment is not right") }
        id = try text("id")
        self.relay = relay
        website = try text("website")
        token = try text("token")
        self.pins = pins
        pinSequence = object["pins_seq"]?.integer ?? 0
        self.key = key
        agreementKey = bytes("agreement_key")
        self.platform = platform
        self.environment = environment
        clockOffset = object["clock_offset"]?.integer ?? 0
        pushToken = object["dev_token"]?.string
        name = object["name"]?.string
        codes = object["codes"]?.object.flatMap { PhoneCodes($0) }
        pinSecret = bytes("pin_secret").flatMap { PINSecret($0) }
        for key in (object["document_keys"]?.array ?? []).compactMap({ $0.object.flatMap { DocumentKey($0) } }) {
            documentKeys[key.tag] = key
        }
        verdict = object["verdict"]?.string
        state =
            if let device = object["device"]?.string {
                .bound(device: device)
            } else {
                .begun(code: try text("activation_code"), websiteKey: bytes("k"))
            }
    }
}
