import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// The store port for changes of bound phones (verb Enrol). A phone is named, suspended, resumed
/// and unbound by its website, by itself, by an operator, or with its revocation code.
public protocol DeviceStore: Sendable {
    /// Returns the phone if it belongs to that user of that website.
    func device(_ id: DeviceID, ofUser username: String, of website: WebsiteID, at: Timestamp)
        async throws(StoreFailure) -> OwnedDevice?
    /// Returns the phone that was bound with this revocation code.
    func device(revocation digest: [UInt8]) async throws(StoreFailure) -> (id: DeviceID, user: UserID)?
    /// Changes a phone. Returns the challenges that ended with the change; nil if the guards
    /// refused, because the phone's state does not allow the change.
    func change(_ change: DeviceChange, as operation: Operation) async throws(StoreFailure) -> [ChallengeID]?
}

/// A phone with its user, as its website sees it.
public struct OwnedDevice: Sendable, Equatable {
    public let user: UserID
    public var view: DeviceView
    /// The author of the suspension or revocation; nil if the phone is neither.
    public let stoppedBy: ChangeAuthor?

    public init(user: UserID, view: DeviceView, stoppedBy: ChangeAuthor?) {
        self.user = user
        self.view = view
        self.stoppedBy = stoppedBy
    }
}

/// A change of a phone. A value that is nil stays as it is.
public struct DeviceChange: Sendable {
    public let device: DeviceID
    public let user: UserID
    public var name: String?
    /// The name before, for the audit; the outer nil: it is not known.
    public var formerName: String??
    public var state: DeviceState?
    public var pushToken: String?
    /// Whether the phone was verified after the store was restored from a copy.
    public var isVerified = false
    /// Whether the change is about an unbound phone without a key. The phone stays unbound, and
    /// `state` says whether its website may bind it again.
    public internal(set) var isOfUnbound = false
    /// The author of the change, and the outcome in its audit row.
    public let by: ChangeAuthor
    public let at: Timestamp

    public init(_ device: DeviceID, of user: UserID, by doer: ChangeAuthor, at now: Timestamp) {
        self.device = device
        self.user = user
        by = doer
        at = now
    }

    /// The event in log and audit.
    public var event: StaticString {
        switch state {
        case .revoked: isOfUnbound ? "device.taken" : "device.unbound"
        case .suspended: "device.suspended"
        case .active: isOfUnbound ? "device.released" : "device.resumed"
        case .waiting, nil: isVerified ? "device.verified" : "device.changed"
        }
    }

    /// The values before and after, for the audit.
    public var changes: ChangedValues {
        var values = ChangedValues()
        if let name, let formerName { values.note("name", .text(formerName), .string(name)) }
        return values
    }

    /// Whether the phone can no longer answer. The change then also drops its pushes, and withdraws
    /// unused approvals of its user. Otherwise a thief of the phone could have another phone bound.
    public var isUnbinding: Bool { !isOfUnbound && (state == .revoked || state == .suspended) }

    /// The states that the change starts from. An unbound phone stays unbound, and a website cannot
    /// make a waiting phone active.
    public var from: [DeviceState] {
        if isOfUnbound { return [.revoked] }
        if state == .revoked { return [.active, .suspended, .waiting] }
        return by == .phone ? [.active] : [.active, .suspended]
    }
}

/// The code with which a person unbinds a lost phone: 15 bytes in base64url.
public enum RevocationCode {
    static let bytes = 15

    static func text(_ secret: OperationSecret) -> String {
        Base64URL.encode(secret.derive("revocation", count: bytes))
    }

    static func isOne(_ code: String) -> Bool { Base64URL.decode(code)?.count == bytes }

    public static func digest(_ code: String) -> [UInt8] { SHA256.hash(Array(code.utf8)) }
}

/// Changes by the website.
extension Relay {
    /// Renames, suspends or resumes a phone, or notes that it was verified after a restore.
    ///
    /// - Returns: the phone after the change.
    public func change(
        _ device: DeviceID, ofUser username: String, name: String?, state: DeviceSwitch?, isVerified: Bool = false,
        by website: Website
    ) async throws(Refusal) -> DeviceView {
        let owned = try await owned(device, username, website)
        var change = DeviceChange(device, of: owned.user, by: .website, at: time.now())
        change.name = name
        change.formerName = owned.view.name
        if let state, state.state != owned.view.state { change.state = state.state }
        change.isVerified = isVerified && owned.view.verifySince != nil
        guard change.name != nil || change.state != nil || change.isVerified else { return owned.view }
        guard try await apply(change, website.name, as: operations.new()) else {
            let now = try await self.owned(device, username, website)
            if now.view.state == .suspended, now.stoppedBy == .operator {
                throw .stopped("device resume \(device.text)")
            }
            let state = now.view.state.rawValue
            let text = LocalizedText("is \(state)", de: "hat den Zustand \(state)")
            throw .conflict([FieldFault("device", .state, text)])
        }
        return try await self.owned(device, username, website).view
    }

    /// Unbinds a phone. It is no error if the phone is unbound already.
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
        logForgedReport(of: owned.view)
        return owned
    }
}

/// Changes by the phone itself.
extension Relay {
    /// Changes the phone's device token or name, or renews its certificate.
    ///
    /// - Parameters:
    ///   - pushToken: a `twoefay-token+jwt`.
    ///   - certificateRequest: the phone's certificate request for the renewal, in PEM.
    /// - Returns: a new certificate if one was requested. If the authority is outside of the
    ///   installation and issues none now, a token or name beside it is changed all the same.
    public func change(
        pushToken: String?, name: String?, renews: Bool, certificateRequest: String? = nil, by phone: PhoneCredential
    ) async throws(Refusal) -> String? {
        let key: P256PublicKey
        do {
            key = try P256PublicKey(x963: phone.publicKey)
        } catch {
            log.error("device.key", [.device: phone.id.text])
            throw .broken
        }
        let request = try Self.renewalRequest(certificateRequest, of: key, renews: renews)
        var change = DeviceChange(phone.id, of: phone.user, by: .phone, at: time.now())
        change.name = name
        if let pushToken {
            let audience = "\(settings.origin)#\(phone.website.name)"
            guard let token = PushTokenProof.token(pushToken, of: phone.id, key: key, audience: audience) else {
                throw .invalid([
                    FieldFault(
                        "dev_token", .format,
                        LocalizedText(
                            "must be a twoefay-token+jwt that this phone has signed",
                            de: "muss ein twoefay-token+jwt sein, das dieses Telefon signiert hat"))
                ])
            }
            try requireUsable(token, of: phone.platform)
            change.pushToken = token
        }
        guard !renews || !phones.isOutside || change.name == nil && change.pushToken == nil else {
            guard try await apply(change, phone.website.name, as: operations.by(phone)) else {
                throw .unauthenticated
            }
            return try await certificateIfPossible(for: key, request, of: phone.id, user: phone.user)
        }
        let certificate = renews ? try await certificate(for: key, request, of: phone.id, user: phone.user) : nil
        // A renewal is recorded too, and only an active phone gets the certificate.
        guard try await apply(change, phone.website.name, as: operations.by(phone)) else { throw .unauthenticated }
        return certificate
    }

    public func unbind(by phone: PhoneCredential) async throws(Refusal) {
        try await unbind(phone.id, of: phone.user, by: .phone, phone.website.name, as: operations.by(phone))
    }
}

/// Changes with the revocation code.
extension Relay {
    /// Unbinds the phone that was bound with the code. If there is no such phone, the relay does
    /// the same work and gives the same answer. A sender of many codes is slowed down, whether they
    /// are right or wrong. A text that cannot be a code causes no query.
    public func revoke(code: String, from sender: String) async throws(Refusal) {
        guard RevocationCode.isOne(code) else {
            throw .invalid([
                FieldFault(
                    "revocation_code", .format,
                    LocalizedText(
                        "must be the code from /verify: 20 letters, digits, - and _",
                        de: "muss der Code aus /verify sein: 20 Buchstaben, Ziffern, - und _"))
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
        // The relay does not need the device token any more.
        change.pushToken = ""
        _ = try await apply(change, website, as: operation)
    }

    /// Stores a change, and wakes the held requests that it concerns. Returns false if the phone's
    /// state does not allow the change.
    private func apply(
        _ change: DeviceChange, _ website: String?, as operation: Operation
    ) async throws(Refusal) -> Bool {
        // The steps of an unbound phone end, unless another phone has shown their challenge. A right
        // revocation code must cost as many statements as a wrong one.
        if change.isUnbinding, change.by != .code { await recordSeen() }
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
        // For the same reason as above. The audit has the end.
        if change.by != .code { await reportEndedRecoveries(by: operation, of: change.user, website, .phone) }
        guard change.isUnbinding else { return true }
        heldRequests.fire(.phone(change.device))
        scheduleWebhooks()
        for challenge in ended { self.ended(challenge, .cancelled) }
        if !ended.isEmpty { heldRequests.fire(.user(change.user)) }
        return true
    }
}
