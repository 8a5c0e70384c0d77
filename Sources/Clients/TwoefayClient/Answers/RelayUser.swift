import Bytes
import JSON
import World

/// A user of this website, as the relay stores it.
public struct RelayUser: Sendable, Equatable {
    /// A factor of the user. All phones together form one factor.
    public struct OwnFactor: Sendable, Equatable {
        /// The kind of the factor.
        public let kind: Factor
        /// The state of the factor.
        public let state: AccountState
        /// The address or number to which codes are sent, mostly masked.
        public let address: String?
        /// The number of consecutive failures of this factor.
        public let failures: Int64
        /// The position of the recovery code that must be typed back, if recovery codes wait.
        public let position: Int64?
        /// The time at which a code of this factor was last right.
        public let lastCodeAt: Timestamp?
        /// The phone that shows the codes itself; nil if they come from elsewhere.
        public let device: String?
    }

    /// The opaque id of the user, as `/register` returned it.
    public let token: String
    /// The user's mail address; nil if there is none.
    public let email: String?
    /// The user's phone number for text messages; nil if there is none.
    public let phone: String?
    /// The state of the user.
    public let state: AccountState
    /// The cause of a lock or freeze; nil if there is none. `phone` means the answers of a phone;
    /// `operator` means that only an operator can lift it.
    public let stoppedBy: String?
    /// The time from which no login of the user succeeds; nil if the user does not expire.
    public let expiresAt: Timestamp?
    /// Whether the user's codes are locked after too many wrong ones. The user's phone can still
    /// approve.
    public let areCodesLocked: Bool
    /// The unfinished steps of the user's enrolment.
    public let missing: [EnrolmentStep]
    /// The time at which a code of the user was last right.
    public let lastCodeAt: Timestamp?
    /// The factors that the user can answer with.
    public let factors: [OwnFactor]
    /// The user's phones.
    public let devices: [Device]
    /// The whole answer, as the relay sent it.
    public let json: JSONObject

    init(_ json: JSONObject) throws(CallFault) {
        self.json = json
        token = try json.text("token")
        email = json["email"]?.string
        phone = json["phone"]?.string
        state = try json.word("state")
        stoppedBy = json["stopped_by"]?.string
        expiresAt = try json.timestamp(ifAny: "expires_at")
        areCodesLocked = json["codes"]?.string == "locked"
        missing = try json.words(ifAny: "missing")
        lastCodeAt = try json.timestamp(ifAny: "last_code_at")
        var factors: [OwnFactor] = []
        for factor in try json.objects("factors") {
            factors.append(
                OwnFactor(
                    kind: try factor.word("kind"), state: try factor.word("state"),
                    address: factor["address"]?.string, failures: factor["failures"]?.integer ?? 0,
                    position: factor["position"]?.integer, lastCodeAt: try factor.timestamp(ifAny: "last_code_at"),
                    device: factor["device"]?.string))
        }
        self.factors = factors
        var devices: [Device] = []
        for device in try json.objects("devices") { devices.append(try Device(device)) }
        self.devices = devices
    }
}

/// A phone of a user, from `RelayClient.user` or a webhook.
public struct Device: Sendable, Equatable {
    /// The id of the phone.
    public let id: String
    /// The name by which the user knows the phone.
    public let name: String?
    /// The platform of the phone: `ios`, `android`, `web` or `other`.
    public let platform: String?
    /// The current state of the phone; nil in a webhook, which reports an event and not a state.
    public let state: AccountState?
    /// The thumbprint of the phone's key (RFC 7638).
    public let thumbprint: String?
    /// The time at which the phone was bound.
    public let createdAt: Timestamp?
    /// The time at which an answer of this phone last ended a challenge; nil if none has.
    public let lastSeenAt: Timestamp?
    /// The phone's attestation; nil in a webhook, or if none counts at this website.
    public let attestation: PhoneAttestation?
    /// The author of a suspension or removal, such as `operator`; nil if the phone is neither.
    public let stoppedBy: String?
    /// The time at which the phone expires with its user; nil if it does not.
    public let expiresAt: Timestamp?
    /// The time since which the phone is in doubt: the relay's store was restored from a copy that
    /// may not know that the phone was unbound. It is nil if the phone is in no doubt.
    public let verifySince: Timestamp?
    /// The number of challenges that the phone has approved.
    public let loginSuccesses: Int64
    /// The number of challenges that its answer ended otherwise: denials, reports of fraud, wrong
    /// numbers, and approvals from a refused place.
    public let loginFailures: Int64
    /// The number of wrong numbers since the last right one.
    public let wrongNumbers: Int64
    /// The state of the phone's PIN: `none`, `set` or `locked`; nil in a webhook. A phone whose PIN
    /// is locked cannot approve.
    public let pin: String?
    /// The last report of the phone about itself; nil if it has reported nothing.
    public let report: DeviceReport?
    /// The further certificates of the phone, whose keys sign documents.
    public let certificates: [TaggedCertificate]
    /// The entry of `devices[]`, or the `data` of a webhook, as the relay sent it.
    public let json: JSONObject

    init(_ json: JSONObject) throws(CallFault) {
        self.json = json
        id = try json.text("device")
        name = json["name"]?.string
        platform = json["platform"]?.string
        state = json.word(ifAny: "state")
        thumbprint = json["thumbprint"]?.string
        attestation = try PhoneAttestation(json["attestation"])
        createdAt = try json.timestamp(ifAny: "created_at")
        lastSeenAt = try json.timestamp(ifAny: "last_seen_at")
        stoppedBy = json["stopped_by"]?.string
        expiresAt = try json.timestamp(ifAny: "expires_at")
        verifySince = try json.timestamp(ifAny: "verify_since")
        loginSuccesses = json["login_successes"]?.integer ?? 0
        loginFailures = json["login_failures"]?.integer ?? 0
        wrongNumbers = json["wrong_numbers"]?.integer ?? 0
        pin = json["pin"]?.string
        report = try json["report"]?.object.map { report throws(CallFault) in try DeviceReport(report) }
        var certificates: [TaggedCertificate] = []
        for certificate in json["certificates"]?.array ?? [] {
            certificates.append(try TaggedCertificate(certificate.object ?? [:]))
        }
        self.certificates = certificates
    }
}

/// The report of a phone about itself. Only the phone's software says so: it is a hint, and proves
/// nothing. A property is nil if the phone did not report it.
public struct DeviceReport: Sendable, Equatable {
    /// The operating system, such as `iOS`.
    public let os: String?
    /// The version of the operating system.
    public let osVersion: String?
    /// The year and month of Android's security patches, such as 202610.
    public let patchLevel: Int64?
    /// The version of the app.
    public let appVersion: String?
    /// The model of the phone.
    public let model: String?
    /// The charge of the battery in percent.
    public let battery: Int64?
    /// Whether the phone has a screen lock.
    public let hasScreenLock: Bool?
    /// Whether the app thinks that the phone is rooted.
    public let isRooted: Bool?
    /// The time of the report by the phone's clock.
    public let reportedAt: Timestamp
    /// The time of the report by the relay's clock.
    public let receivedAt: Timestamp

    init(_ json: JSONObject) throws(CallFault) {
        os = json["os"]?.string
        osVersion = json["os_version"]?.string
        patchLevel = json["patch_level"]?.integer
        appVersion = json["app_version"]?.string
        model = json["model"]?.string
        battery = json["battery"]?.integer
        hasScreenLock = json["screen_lock"]?.bool
        isRooted = json["rooted"]?.bool
        reportedAt = try json.timestamp("reported_at")
        receivedAt = try json.timestamp("received_at")
    }
}

extension BindingCheck {
    /// Checks the binding of a phone that `RelayClient.user` or a webhook returned.
    public func pinned(_ device: Device, token: String, k: Secret) throws(BindingFault) -> PinnedPhone {
        try pinned(device.json, token: token, k: k)
    }
}

/// A mail with an activation, which the relay sends to a user.
public struct MailedActivation: Sendable, Equatable {
    /// The address, masked so that it can be shown to the user.
    public let sentTo: String
    /// The time at which the code expires.
    public let expiresAt: Timestamp

    init(_ json: JSONObject) throws(CallFault) {
        sentTo = try json.text("sent_to")
        expiresAt = try json.timestamp("expires_at")
    }
}

/// The code and URI with which a user binds a phone.
public struct Activation: Sendable, Equatable {
    /// The activation code, which works once.
    public let code: String
    /// The activation URI, for display as a QR code.
    public let uri: String
    /// The QR code of `uri`, as SVG.
    public let qr: String
    /// The time at which the code expires.
    public let expiresAt: Timestamp

    init(_ json: JSONObject) throws(CallFault) {
        code = try json.text("code")
        uri = try json.text("uri")
        qr = try json.text("qr")
        expiresAt = try json.timestamp("expires_at")
    }

    /// Returns the activation URI with a secret `k` that the relay never sees.
    ///
    /// The phone uses `k` to prove to the website which key is its own. `BindingCheck` verifies
    /// this proof. The website must draw the QR code of this URI itself.
    ///
    /// - Parameter k: 32 random bytes, new for each activation.
    public func uri(with k: Secret) -> String { "\(uri)&k=\(Base64URL.encode(k.reveal()))" }
}
