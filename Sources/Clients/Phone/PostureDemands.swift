import JSON

/// The state of the phone as it reports it in an answer, if the website has demands.
public struct PhonePosture: Sendable, Equatable {
    /// Such as `18.1`.
    public var osVersion: String?
    /// The bundle version on iOS, the version code on Android.
    public var appVersion: String?
    public var hasScreenLock: Bool?

    public init(osVersion: String? = nil, appVersion: String? = nil, hasScreenLock: Bool? = nil) {
        self.osVersion = osVersion
        self.appVersion = appVersion
        self.hasScreenLock = hasScreenLock
    }

    var claim: JSONObject {
        var object = JSONObject()
        if let osVersion { object.set("os_version", .string(osVersion)) }
        if let appVersion { object.set("app_version", .string(appVersion)) }
        if let hasScreenLock { object.set("screen_lock", .bool(hasScreenLock)) }
        return object
    }
}

/// The demands that the phone must meet to approve, as the relay names them with the challenge. The
/// phone shows those that it does not meet before it asks the person.
public struct PostureDemands: Sendable, Equatable {
    /// Whether only phones with a valid attestation can approve.
    public let needsAttestation: Bool
    /// Whether the answer needs an assertion of App Attest.
    public let needsAssertion: Bool
    public let osVersion: String?
    public let appVersion: String?
    public let needsScreenLock: Bool
    public let needsVerifiedBoot: Bool
    public let patchLevel: Int64?
    /// The seconds for which a user verification counts; nil for any time.
    public let maxUVAge: Int64?
    /// The demand on the PIN: `sign` if the answer needs it, `set` if the phone must set one first,
    /// `locked`; nil if there is none.
    public let pin: String?
    /// Whether the website has demands on the state of the phone. A PIN or a recent user verification
    /// says nothing about it.
    public let asksPosture: Bool
    /// The demands that this phone cannot meet unless it is bound again.
    public let unmet: [String]

    init(_ object: JSONObject) {
        func version(_ name: String) -> String? { object[name]?.string.map { ScreenText.visible($0, limit: 64) } }
        needsAttestation = object["attestation"]?.string == "required"
        needsAssertion = object["assertion"]?.bool == true
        osVersion = version("os_version")
        appVersion = version("app_version")
        needsScreenLock = object["screen_lock"]?.bool == true
        needsVerifiedBoot = object["verified_boot"]?.bool == true
        patchLevel = object["patch_level"]?.integer
        maxUVAge = object["max_uv_age"]?.integer
        pin = object["pin"]?.string.map { ScreenText.visible($0, limit: 64) }
        asksPosture = object.members.contains { $0.name != "pin" && $0.name != "max_uv_age" }
        unmet = (object["unmet"]?.array ?? []).compactMap { $0.string.map { ScreenText.visible($0, limit: 64) } }
    }

    /// The demands as a text for people.
    public var text: String {
        var parts: [String] = []
        if needsAttestation { parts.append("a valid attestation") }
        if let osVersion { parts.append("system \(osVersion) or later") }
        if let patchLevel { parts.append("security patches of \(patchLevel) or later") }
        if let appVersion { parts.append("app \(appVersion) or later") }
        if needsVerifiedBoot { parts.append("the manufacturer's system") }
        if needsScreenLock { parts.append("a screen lock") }
        if let maxUVAge { parts.append("a check of its user in the last \(maxUVAge) s") }
        if pin != nil { parts.append("the PIN") }
        return parts.isEmpty ? "nothing of this phone" : parts.joined(separator: ", ")
    }

    /// Whether an approval needs the PIN's signature.
    public var needsPIN: Bool { pin == "sign" }

    /// The demands that no answer can meet now, as a text for people; nil if there are none. Some of
    /// them need a new enrolment.
    public var unmetText: String? {
        var parts: [String] = []
        if !unmet.isEmpty {
            let list = unmet.joined(separator: ", ")
            parts.append("\(list): this phone must be bound again, after an update if it needs one")
        }
        if pin == "set" { parts.append("pin: set one first") }
        if pin == "locked" { parts.append("pin: it is locked, and can be reset") }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// The demanded values that an answer with this report leaves out, as a text for people; nil if
    /// it has all. The relay may know them otherwise: from the attestation, or from the last report.
    public func unreported(_ posture: PhonePosture?) -> String? {
        guard unmet.isEmpty else { return nil }
        var parts: [String] = []
        if osVersion != nil, posture?.osVersion == nil { parts.append("system version") }
        if appVersion != nil, posture?.appVersion == nil { parts.append("app version") }
        if needsScreenLock, posture?.hasScreenLock != true { parts.append("screen lock") }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
}
