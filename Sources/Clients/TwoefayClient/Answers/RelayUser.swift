import Bytes
import JSON
import World

/// A user as the relay has it.
public struct RelayUser: Sendable, Equatable {
    /// What a user can answer with: all phones together are one.
    public struct OwnFactor: Sendable, Equatable {
        public let kind: Factor
        public let state: AccountState
        /// With most of it hidden.
        public let address: String?
        public let failures: Int64
    }

    public let token: String
    public let email: String?
    public let phone: String?
    public let state: AccountState
    /// The cause that locked or froze the user: `phone` or `operator`.
    public let stoppedBy: String?
    /// Too many codes were wrong, and none is taken. The user's phone can still approve.
    public let areCodesLocked: Bool
    public let factors: [OwnFactor]
    public let devices: [Device]
    /// The whole of it.
    public let json: JSONObject

    init(_ json: JSONObject) throws(CallFault) {
        self.json = json
        token = try json.text("token")
        email = json["email"]?.string
        phone = json["phone"]?.string
        state = try json.word("state")
        stoppedBy = json["stopped_by"]?.string
        areCodesLocked = json["codes"]?.string == "locked"
        var factors: [OwnFactor] = []
        for factor in try json.objects("factors") {
            factors.append(
                OwnFactor(
                    kind: try factor.word("kind"), state: try factor.word("state"),
                    address: factor["address"]?.string, failures: factor["failures"]?.integer ?? 0))
        }
        self.factors = factors
        var devices: [Device] = []
        for device in try json.objects("devices") { devices.append(try Device(device)) }
        self.devices = devices
    }
}

/// A phone of a user's.
public struct Device: Sendable, Equatable {
    public let id: String
    public let name: String?
    public let platform: String?
    /// Nil in a webhook: it says what happened, not how things stand.
    public let state: AccountState?
    /// Of its key (RFC 7638).
    public let thumbprint: String?
    public let createdAt: Timestamp?
    public let lastSeenAt: Timestamp?
    /// An entry of `devices[]`, or a webhook's data, as it came.
    public let json: JSONObject

    init(_ json: JSONObject) throws(CallFault) {
        self.json = json
        id = try json.text("device")
        name = json["name"]?.string
        platform = json["platform"]?.string
        state = json.word(ifAny: "state")
        thumbprint = json["thumbprint"]?.string
        createdAt = try json.timestamp(ifAny: "created_at")
        lastSeenAt = try json.timestamp(ifAny: "last_seen_at")
    }
}

extension BindingCheck {
    /// The same of a phone as `RelayClient.user` or a webhook shows it.
    public func pinned(_ device: Device, token: String, k: Secret) throws(BindingFault) -> PinnedPhone {
        try pinned(device.json, token: token, k: k)
    }
}

/// What binds a phone to a user.
public struct Activation: Sendable, Equatable {
    public let code: String
    /// To be shown as a QR code.
    public let uri: String
    /// That QR code, as SVG.
    public let qr: String
    public let expiresAt: Timestamp

    init(_ json: JSONObject) throws(CallFault) {
        code = try json.text("code")
        uri = try json.text("uri")
        qr = try json.text("qr")
        expiresAt = try json.timestamp("expires_at")
    }

    /// The URI with a secret that the relay never sees: the phone proves with it that its key is its own, and `BindingCheck`
    /// sees that. The website draws the QR code of this itself.
    ///
    /// - Parameter k: 32 bytes, new for each activation.
    public func uri(with k: Secret) -> String { "\(uri)&k=\(Base64URL.encode(k.reveal()))" }
}
