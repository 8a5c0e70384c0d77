import Bytes
import Crypto
import Domain
import Log
import World

/// Enrol: a bound phone is named, suspended, resumed and unbound: by its website, by itself, by an operator, and by
/// whoever has the code that came with it.
public protocol DeviceStore: Sendable {
    /// The phone, if it is one of that user of that website.
    func device(_ id: DeviceID, ofUser username: String, of website: WebsiteID, at: Timestamp)
        async throws(StoreFailure) -> OwnedDevice?
    /// The phone that this revocation code came with.
    func device(revocation digest: [UInt8]) async throws(StoreFailure) -> (id: DeviceID, user: UserID)?
    /// The challenges that ended with it; nil when the guards refused: the phone is not in a state to be changed so.
    func change(_ change: DeviceChange, as operation: Operation) async throws(StoreFailure) -> [ChallengeID]?
}

public struct OwnedDevice: Sendable, Equatable {
    public let user: UserID
    public let view: DeviceView
    /// Who suspended or revoked it.
    public let stoppedBy: ChangeAuthor?

    public init(user: UserID, view: DeviceView, stoppedBy: ChangeAuthor?) {
        self.user = user
        self.view = view
        self.stoppedBy = stoppedBy
    }
}

/// What is to become of a phone; what is nil stays as it is.
public struct DeviceChange: Sendable {
    public let device: DeviceID
    public let user: UserID
    public var name: String?
    public var state: DeviceState?
    public var pushToken: String?
    /// The phone has no key, is unbound, and stays so: `state` says whether its website may bind it again.
    public internal(set) var isOfUnbound = false
    /// The outcome of its audit row.
    public let by: ChangeAuthor
    public let at: Timestamp

    public init(_ device: DeviceID, of user: UserID, by doer: ChangeAuthor, at now: Timestamp) {
        self.device = device
        self.user = user
        by = doer
        at = now
    }

    /// What log and audit call it.
    public var event: StaticString {
        switch state {
        case .revoked: isOfUnbound ? "device.taken" : "device.unbound"
        case .suspended: "device.suspended"
        case .active: isOfUnbound ? "device.released" : "device.resumed"
        case .waiting, nil: "device.changed"
        }
    }

    /// It answers no more, and what hangs on its word goes with it.
    public var isUnbinding: Bool { !isOfUnbound && (state == .revoked || state == .suspended) }

    /// What it may be before. What is unbound stays so, and one that waits is no website's to make active.
    public var from: [DeviceState] {
        if isOfUnbound { return [.revoked] }
        if state == .revoked { return [.active, .suspended, .waiting] }
        return by == .phone ? [.active] : [.active, .suspended]
    }
}

public enum RevocationCode {
    static let bytes = 15

    static func text(_ secret: OperationSecret) -> String {
        Base64URL.encode(secret.derive("revocation", count: bytes))
    }

    static func isOne(_ code: String) -> Bool { Base64URL.decode(code)?.count == bytes }

    public static func digest(_ code: String) -> [UInt8] { SHA256.hash(Array(code.utf8)) }
}

/// By the website.
extension Relay {
    /// - Returns: the phone as it is then.
    public func change(
        _ device: DeviceID, ofUser username: String, name: String?, state: DeviceSwitch?, by website: Website
    ) async throws(Refusal) -> DeviceView {
        let owned = try await owned(device, username, website)
        var change = DeviceChange(device, of: owned.user, by: .website, at: time.now())
        change.name = name
        if let state, state.state != owned.view.state { change.state = state.state }
        guard change.name != nil || change.state != nil else { return owned.view }
        guard try await apply(change, website.name, as: operations.new()) else {
            let now = try await self.owned(device, username, website)
            if now.view.state == .suspended, now.stoppedBy == .operator {
                throw .stopped("device resume \(device.text)")
            }
            throw .conflict([FieldFault("device", .state, "is \(now.view.state.rawValue)")])
        }
        return try await self.owned(device, username, website).view
    }

    /// That it is unbound already is no error.
    public func unbind(_ device: DeviceID, ofUser username: String, by website: Website) async throws(Refusal) {
        let owned = try await owned(device, username, website)
        try await unbind(device, of: owned.user, by: .website, website.name, as: operations.new())
    }

    private func owned(
        _ device: DeviceID, _ username: String, _ website: Website
    ) async throws(Refusal) -> OwnedDevice {
        let owned = try await withStore("device") { () async throws(StoreFailure) in
            try await store.device(device, ofUser: username, of: website.id, at: time.now())
        }
        guard let owned else { throw .notFound }
        return owned
    }
}

/// By the phone itself.
extension Relay {
    /// - Parameter pushToken: a `twoefay-token+jwt`.
    /// - Returns: a new certificate, if one was asked for.
    public func change(
        pushToken: String?, name: String?, renews: Bool, by phone: PhoneCredential
    ) async throws(Refusal) -> String? {
        let key: P256PublicKey
        do {
            key = try P256PublicKey(x963: phone.publicKey)
        } catch {
            log.error("device.key", [.device: phone.id.text])
            throw .broken
        }
        var change = DeviceChange(phone.id, of: phone.user, by: .phone, at: time.now())
        change.name = name
        if let pushToken {
            let audience = "\(settings.origin)#\(phone.website.name)"
            guard let token = PushTokenProof.token(pushToken, of: phone.id, key: key, audience: audience) else {
                throw .invalid([
                    FieldFault("dev_token", .format, "must be a twoefay-token+jwt that this phone has signed")
                ])
            }
            try requireUsable(token, of: phone.platform)
            change.pushToken = token
        }
        let certificate = renews ? try await certificate(for: key, of: phone.id) : nil
        // The renewal too is written down, and given only to a phone that is active still.
        guard try await apply(change, phone.website.name, as: operations.by(phone)) else { throw .unauthenticated }
        return certificate
    }

    public func unbind(by phone: PhoneCredential) async throws(Refusal) {
        try await unbind(phone.id, of: phone.user, by: .phone, phone.website.name, as: operations.by(phone))
    }
}

/// By whoever has the code.
extension Relay {
    /// Unbinds the phone that the code came with. There may be none: nobody is told, the same is done, and a sender of
    /// many is slowed down whichever they were. What can be no code costs the store nothing.
    public func revoke(code: String, from sender: String) async throws(Refusal) {
        guard RevocationCode.isOne(code) else {
            throw .invalid([
                FieldFault("revocation_code", .format, "must be 20 letters, digits, - and _, as /verify gave it")
            ])
        }
        let now = time.instant()
        let count = revocationThrottle.wrong(sender, admitted: try admitted(sender, by: revocationThrottle), at: now)
        if count >= SenderThrottle.free { log.notice("code.revocation", [.remote: sender, .count: count]) }
        let found = try await withStore("revoke") { () async throws(StoreFailure) in
            try await store.device(revocation: RevocationCode.digest(code))
        }
        let (device, user) = found ?? (operations.draw(), operations.draw())
        try await unbind(device, of: user, by: .code, nil, as: operations.new())
    }
}

extension Relay {
    private func unbind(
        _ device: DeviceID, of user: UserID, by doer: ChangeAuthor, _ website: String?, as operation: Operation
    ) async throws(Refusal) {
        var change = DeviceChange(device, of: user, by: doer, at: time.now())
        change.state = .revoked
        // The push service need not find it any more.
        change.pushToken = ""
        _ = try await apply(change, website, as: operation)
    }

    /// Writes it down, and wakes what it concerns. False when the phone is not in a state to be changed so.
    private func apply(
        _ change: DeviceChange, _ website: String?, as operation: Operation
    ) async throws(Refusal) -> Bool {
        let ended = try await withStore("device") { () async throws(StoreFailure) in
            try await store.change(change, as: operation)
        }
        guard let ended else { return false }
        log.info(
            change.event,
            [
                .website: website, .user: change.user.text, .device: change.device.text,
                .outcome: change.by.rawValue,
            ])
        guard change.isUnbinding else { return true }
        heldRequests.fire(.phone(change.device))
        scheduleWebhooks()
        for challenge in ended { self.ended(challenge, .cancelled) }
        if !ended.isEmpty { heldRequests.fire(.user(change.user)) }
        return true
    }
}
