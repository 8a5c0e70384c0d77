import Attestation
import JSON
import World

/// The state of a phone as the phone itself reports it: in an answer, as the claim `posture`, or
/// before (`DeviceReport`). A value is nil if the phone does not report it.
public struct ReportedPosture: Sendable, Equatable {
    public var osVersion: DottedVersion?
    public var appVersion: DottedVersion?
    public var hasScreenLock: Bool?
    /// Whether the app thinks that the phone is rooted.
    public var isRooted: Bool?

    public init(
        osVersion: DottedVersion? = nil, appVersion: DottedVersion? = nil, hasScreenLock: Bool? = nil,
        isRooted: Bool? = nil
    ) {
        self.osVersion = osVersion
        self.appVersion = appVersion
        self.hasScreenLock = hasScreenLock
        self.isRooted = isRooted
    }

    /// The time for which the last report of a phone counts.
    public static let reportLifetime = Duration.seconds(86_400)

    /// Returns the report of an answer; values that it leaves out are those of the phone's last
    /// report, if that is not too old. Returns nil if there is neither.
    public static func latest(_ answer: ReportedPosture?, before: DeviceReport?, at now: Timestamp) -> ReportedPosture?
    {
        guard let before, now - before.receivedAt <= reportLifetime else { return answer }
        var latest = answer ?? ReportedPosture()
        latest.osVersion = latest.osVersion ?? before.osVersion.flatMap { DottedVersion($0) }
        latest.appVersion = latest.appVersion ?? before.appVersion.flatMap { DottedVersion($0) }
        latest.hasScreenLock = latest.hasScreenLock ?? before.hasScreenLock
        latest.isRooted = latest.isRooted ?? before.isRooted
        return latest
    }

    /// Reads the claim. Returns nil if a member is unknown or has another form.
    public init?(json: JSONValue) {
        guard let object = json.object else { return nil }
        for member in object.members {
            switch member.name {
            case "os_version": osVersion = Self.version(member.value)
            case "app_version": appVersion = Self.version(member.value)
            case "screen_lock": hasScreenLock = member.value.bool
            case "rooted": isRooted = member.value.bool
            default: return nil
            }
        }
        let count = [osVersion != nil, appVersion != nil, hasScreenLock != nil, isRooted != nil].count { $0 }
        guard count == object.count else { return nil }
    }

    private static func version(_ value: JSONValue) -> DottedVersion? {
        value.string.flatMap { $0.utf8.count <= 64 ? DottedVersion($0) : nil }
    }

    public var json: JSONObject {
        var object = JSONObject()
        if let osVersion { object.set("os_version", .string(osVersion.description)) }
        if let appVersion { object.set("app_version", .string(appVersion.description)) }
        if let hasScreenLock { object.set("screen_lock", .bool(hasScreenLock)) }
        if let isRooted { object.set("rooted", .bool(isRooted)) }
        return object
    }
}

/// The relay's opinion of a phone's attestation.
public enum AttestationVerdict: String, Sendable, CaseIterable {
    /// The attestation is genuine and has no fault.
    case valid
    /// The attestation is genuine and for this phone, but has a fault.
    case flawed
    /// The attestation proves nothing.
    case invalid
    /// The phone sent none.
    case missing

    public init(_ outcome: AttestationOutcome) {
        if outcome.device != nil {
            self = outcome.faults.isEmpty ? .valid : .flawed
        } else {
            self = outcome.faults == [.missing] ? .missing : .invalid
        }
    }
}

/// The demands of a policy on one phone that approves, and the facts about that phone.
///
/// A fact that the platform attested outranks what the phone reports, because a phone can report
/// anything. There is one exception: an assertion proves that the genuine app sent the answer, so
/// the versions in that answer are newer than those of the enrolment and equally good.
///
/// A demand that nobody can attest has not failed: App Attest says nothing about the boot state.
/// But versions and the screen lock can be reported, so they are failed if they are neither
/// attested nor reported.
public struct PhoneDemands: Sendable {
    public enum Demand: String, Sendable, CaseIterable {
        /// The phone must have been bound with an attestation that is still valid.
        case attestation
        /// The answer must have an assertion of App Attest.
        case assertion
        case osVersion = "os_version"
        case patchLevel = "patch_level"
        case appVersion = "app_version"
        case bootState = "boot_state"
        case locked
        case screenLock = "screen_lock"

        init(_ demand: Posture.Demand) {
            self =
                switch demand {
                case .osVersion: .osVersion
                case .patchLevel: .patchLevel
                case .appVersion: .appVersion
                case .bootState: .bootState
                case .locked: .locked
                case .screenLock: .screenLock
                }
        }

        /// Whether only a new enrolment can meet the demand, once it has failed.
        var needsEnrolment: Bool { self != .assertion }
    }

    public let posture: Posture
    /// The requirement for this phone, by the platform that it proved.
    public let attestation: AttestationRequirement
    /// The attested facts that count; nil if there are none.
    public let attested: AttestedDevice?
    /// Whether the attestation is without faults.
    private let isValid: Bool
    private let platform: AttestedDevice.Platform?
    /// Whether the policy lets phones sign their answers, which an assertion needs.
    private let isSigned: Bool

    /// - Parameters:
    ///   - attested: the recorded facts of a genuine attestation; nil if there are none.
    ///   - isValid: whether that attestation has no fault and is not revoked.
    ///   - platform: the platform that the phone named when it was bound.
    public init(of policy: Policy, attested: AttestedDevice?, isValid: Bool, platform: Platform) {
        let requirement =
            attested.map { policy.attestation.requirement(for: $0.platform) } ?? policy.attestation.strictest
        posture = policy.posture
        attestation = requirement
        self.attested = requirement == .none ? nil : attested
        self.isValid = isValid
        self.platform = self.attested?.platform ?? AttestedDevice.Platform(rawValue: platform.rawValue)
        isSigned = policy.answers == .signed
    }

    /// Whether each approval needs an assertion.
    public var needsAssertion: Bool { attestation == .required && canAssert }

    /// Whether the phone has a key that makes assertions.
    public var canAssert: Bool { isSigned && attested?.appAttest != nil }

    /// The demands that the phone does not meet.
    ///
    /// - Parameters:
    ///   - reported: the phone's own report.
    ///   - asserted: the part of the report that an assertion covers; nil without an assertion.
    public func unmet(reported: ReportedPosture?, asserted: ReportedPosture?) -> [Demand] {
        var unmet: [Demand] = []
        if attestation == .required, attested == nil || !isValid { unmet.append(.attestation) }
        if needsAssertion, asserted == nil { unmet.append(.assertion) }
        let report = attested.map { posture.judge($0) } ?? Posture.Report(notAttested: posture.demands(on: platform))
        for demand in report.failed where asserted.flatMap({ isReported(demand, $0) }) != true {
            unmet.append(Demand(demand))
        }
        for demand in report.notAttested where isReported(demand, reported) == false { unmet.append(Demand(demand)) }
        // A phone that calls itself rooted is believed, whatever was attested when it was bound.
        if posture.verifiedBoot, reported?.isRooted == true, !unmet.contains(.bootState) { unmet.append(.bootState) }
        return unmet
    }

    /// Whether the phone reports that it meets the demand; nil if no phone can report this.
    private func isReported(_ demand: Posture.Demand, _ reported: ReportedPosture?) -> Bool? {
        let minimum = platform == .ios ? posture.ios : posture.android
        func isAtLeast(_ version: DottedVersion?, _ least: DottedVersion?) -> Bool {
            guard let version, let least else { return false }
            return version.isAtLeast(least)
        }
        switch demand {
        case .osVersion: return isAtLeast(reported?.osVersion, minimum.osVersion)
        case .appVersion: return isAtLeast(reported?.appVersion, minimum.appVersion)
        case .screenLock: return reported?.hasScreenLock == true
        case .patchLevel, .bootState, .locked: return nil
        }
    }

    /// The demands as the phone gets them before it answers; nil if there are none. `unmet` lists
    /// those that only a new enrolment can meet.
    public var json: JSONObject? {
        let demands = posture.demands(on: platform)
        guard attestation != .none || !demands.isEmpty else { return nil }
        let minimum = platform == .ios ? posture.ios : posture.android
        var object = JSONObject()
        if attestation != .none { object.set("attestation", .string(attestation.rawValue)) }
        if needsAssertion { object.set("assertion", true) }
        for demand in demands {
            switch demand {
            case .osVersion: object.set("os_version", minimum.osVersion.map { .string($0.description) } ?? .null)
            case .appVersion: object.set("app_version", minimum.appVersion.map { .string($0.description) } ?? .null)
            case .patchLevel: object.set("patch_level", posture.patchLevel.map { .integer($0) } ?? .null)
            case .bootState: object.set("verified_boot", true)
            case .locked: break
            case .screenLock: object.set("screen_lock", true)
            }
        }
        let best = ReportedPosture(
            osVersion: minimum.osVersion, appVersion: minimum.appVersion, hasScreenLock: true)
        let hopeless = unmet(reported: best, asserted: canAssert ? best : nil).filter(\.needsEnrolment)
        if !hopeless.isEmpty { object.set("unmet", .array(hopeless.map { .string($0.rawValue) })) }
        return object
    }
}
