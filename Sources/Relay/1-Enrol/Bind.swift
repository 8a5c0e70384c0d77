import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// Enrol: a phone is bound, by itself with an activation code and a proof of its key, or by its website (the
/// original's form, where the website's policy allows it).
public protocol BindStore: Sendable {
    /// The user and its website for a token, or nil.
    func enrolment(of token: UserToken) async throws(StoreFailure) -> Enrolment?
    func bind(_ device: NewDevice, digest: [UInt8], as operation: Operation) async throws(StoreFailure) -> Bool
    /// Binds or replaces the one keyless phone that a website keeps for its user.
    func bindByWebsite(_ device: NewDevice, website: WebsiteID, as operation: Operation)
        async throws(StoreFailure) -> Bool
}

public struct Enrolment: Sendable, Equatable {
    public let user: UserID
    public let website: String
    public let policy: String

    public init(user: UserID, website: String, policy: String) {
        self.user = user
        self.website = website
        self.policy = policy
    }
}

/// What a phone sends to be bound.
public struct BindRequest: Sendable {
    public var token: UserToken
    public var pushToken: String
    public var activationCode: String
    /// A `twoefay-enrol+jwt`, signed by the new key.
    public var proof: String
    public var binding: String?
    public var name: String?
    public var platform: Platform
    public var environment: PushEnvironment

    public init(
        token: UserToken, pushToken: String, activationCode: String, proof: String, binding: String?, name: String?,
        platform: Platform, environment: PushEnvironment
    ) {
        self.token = token
        self.pushToken = pushToken
        self.activationCode = activationCode
        self.proof = proof
        self.binding = binding
        self.name = name
        self.platform = platform
        self.environment = environment
    }
}

public struct NewDevice: Sendable {
    public let id: DeviceID
    public let user: UserID
    public let name: String?
    public let platform: Platform
    public let environment: PushEnvironment
    public let pushToken: String
    public let publicKey: [UInt8]?
    public let thumbprint: [UInt8]?
    public let revocation: [UInt8]?
    public let binding: String?
    public let at: Timestamp
}

public struct Bound: Sendable, Equatable {
    public let device: DeviceID
    public let certificate: String
    public let revocationCode: String
}

extension Relay {
    public static let certificateDays = 90
    /// What a phone's certificate names it by: this and its id.
    public static let deviceURI = "twoefay:device:"

    /// Binds a phone. Which element was wrong is told to no one: everything but success is `unauthenticated`.
    ///
    /// The operation follows from code and key, so a phone that never saw the answer may send the same again.
    public func bind(_ request: BindRequest) async throws(Refusal) -> Bound {
        let enrolment = try await ask("verify") { () async throws(StoreFailure) in
            try await store.enrolment(of: request.token)
        }
        guard let enrolment, let key = EnrolProof.key(request, origin: settings.origin, website: enrolment.website)
        else { throw .unauthenticated }
        let digest = SHA256.hash(Array(request.activationCode.utf8))
        let operation = operations.fixed("bind", digest + key.spkiThumbprint)
        // One key of one user is one phone, however often it is bound.
        let phone = operations.fixed("device", enrolment.user.bytes + key.spkiThumbprint)
        let revocation = Base64URL.encode(phone.secret("revocation", count: 15))
        let device = NewDevice(
            id: phone.identifier("device"), user: enrolment.user, name: request.name, platform: request.platform,
            environment: request.environment, pushToken: request.pushToken, publicKey: key.x963,
            thumbprint: key.spkiThumbprint, revocation: SHA256.hash(Array(revocation.utf8)),
            binding: request.binding, at: time.now())
        let bound = try await ask("verify") { () async throws(StoreFailure) in
            try await store.bind(device, digest: digest, as: operation)
        }
        guard bound else { throw .unauthenticated }
        log.info("device.bound", [.website: enrolment.website, .user: enrolment.user.text, .device: device.id.text])
        return Bound(
            device: device.id, certificate: try certificate(for: key, of: device.id), revocationCode: revocation)
    }

    /// The original's form: the website binds the push token of its own user's phone.
    public func bind(
        token: UserToken, pushToken: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> DeviceID {
        guard website.policy.answers == .website else {
            throw .forbidden("this website's policy is answers: \(website.policy.answers.rawValue)")
        }
        let user = try await ask("verify") { () async throws(StoreFailure) in
            try await store.user(token: token, of: website.id)
        }
        guard let user else { throw .notFound }
        let device = NewDevice(
            id: operations.fixed("website phone", user.id.bytes).identifier("device"), user: user.id, name: nil,
            platform: .other, environment: .production, pushToken: pushToken, publicKey: nil, thumbprint: nil,
            revocation: nil, binding: nil, at: time.now())
        let bound = try await ask("verify") { () async throws(StoreFailure) in
            try await store.bindByWebsite(device, website: website.id, as: operation)
        }
        guard bound else { throw .notFound }
        log.info("device.bound", [.website: website.name, .user: user.id.text, .device: device.id.text])
        return device.id
    }

    private func certificate(for key: P256PublicKey, of device: DeviceID) throws(Refusal) -> String {
        do {
            let certificate = try phones.issueClient(
                uri: Self.deviceURI + device.text, key: key, days: Self.certificateDays, at: time.now())
            return String(decoding: try certificate.pem(), as: UTF8.self)
        } catch {
            log.error("device.certificate", [.device: device.text, .error: "\(error)"])
            throw .broken
        }
    }
}

/// The JWS with which a phone proves that it holds its new key and knows its activation code.
enum EnrolProof {
    /// The proven key, or nil if anything at all is wrong.
    static func key(_ request: BindRequest, origin: String, website: String) -> P256PublicKey? {
        guard let object = try? JWS.parse(request.proof, maxBytes: 8192),
            object.header["typ"]?.string == "twoefay-enrol+jwt", let jwk = object.header["jwk"],
            let key = try? P256PublicKey(jwk: jwk), object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object,
            claims["v"]?.integer == 1, claims["aud"]?.string == "\(origin)#\(website)",
            claims["id_token"]?.string == request.token.text,
            claims["activation_code"]?.string == request.activationCode,
            claims["dev_token"]?.string == request.pushToken, claims["iat"]?.integer != nil
        else { return nil }
        return key
    }
}
