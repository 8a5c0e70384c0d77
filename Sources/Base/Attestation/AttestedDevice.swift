import Bytes
import Crypto
import JSON
import World

/// The facts that a platform attested about a phone. A value exists only if the attestation is
/// genuine, for the enrolment, and for the app.
///
/// A fact is nil if the platform does not attest it. App Attest says nothing about boot state,
/// patch level and screen lock.
public struct AttestedDevice: Sendable, Equatable {
    public enum Platform: String, Sendable, CaseIterable {
        case ios, android
    }

    /// The place of the attested key.
    public enum Hardware: String, Sendable, CaseIterable {
        case secureEnclave = "secure_enclave"
        case trustedEnvironment = "tee"
        case strongBox = "strongbox"
    }

    /// The result of Android's verified boot.
    public enum BootState: String, Sendable, CaseIterable {
        case verified
        /// The system is verified with a key that the owner installed.
        case selfSigned = "self_signed"
        case unverified, failed
    }

    public enum Environment: String, Sendable, CaseIterable {
        case production, development
    }

    /// The screen lock or biometric check without which the key does not sign.
    public enum UserAuthentication: String, Sendable, CaseIterable {
        case none
        /// The key signs for some time after a check. Unlocking the phone counts as one.
        case timed
        /// Each signature needs a check of its own.
        case required
    }

    public let platform: Platform
    public let hardware: Hardware
    /// The App ID (`TEAM.bundle`), or the package name.
    public let app: String
    /// The bundle version on iOS, the version code on Android.
    public var appVersion: String?
    /// The environment of App Attest. Android has no such distinction.
    public var environment: Environment?
    public var osVersion: DottedVersion?
    /// The month of the security patches as a number, such as 202607; 0 if it cannot be read.
    public var patchLevel: Int64?
    public var boot: BootState?
    /// Whether the boot loader is locked.
    public var isLocked: Bool?
    public var userAuthentication: UserAuthentication?
    /// The SHA-256 of the trusted root's key.
    public let root: [UInt8]
    /// The key of App Attest and its receipt; nil on Android.
    public var appAttest: AppAttestKey?
    /// The time of the revocation list that was used; nil without a list, and on iOS.
    public var revocationList: Timestamp?
}

/// A key of App Attest. Its assertions are verified with `AppAssertion`.
public struct AppAttestKey: Sendable, Equatable {
    public let key: P256PublicKey
    /// Apple's receipt, unchanged and not verified.
    public let receipt: [UInt8]

    public init(key: P256PublicKey, receipt: [UInt8]) {
        self.key = key
        self.receipt = receipt
    }
}

extension AttestedDevice {
    /// The facts for records and websites, without those that the platform does not attest.
    /// `docs/phones/attestation.md` lists the members.
    public var json: JSONObject {
        var members: JSONObject = [
            "platform": .string(platform.rawValue), "hardware": .string(hardware.rawValue), "app": .string(app),
        ]
        members.set("app_version", appVersion.map { .string($0) })
        members.set("environment", environment.map { .string($0.rawValue) })
        members.set("os_version", osVersion.map { .string($0.description) })
        members.set("patch_level", patchLevel.map { .integer($0) })
        members.set("boot_state", boot.map { .string($0.rawValue) })
        members.set("locked", isLocked.map { .bool($0) })
        members.set("user_authentication", userAuthentication.map { .string($0.rawValue) })
        members.set("root", .string(Base64URL.encode(root)))
        return members
    }
}
