import Attestation
import Bytes
import Domain

extension Settings {
    /// The apps whose phones are attested, and the files that verify their attestations.
    public struct AttestationSettings: Sendable, Equatable {
        public var appleApps: AppIDs?
        public var development = DevelopmentApps.refused
        /// Roots for App Attest besides Apple's.
        public var appleRoots: FileName?
        public var androidApps: AndroidApps?
        /// Roots for Android besides Google's.
        public var androidRoots: FileName?
        /// Google's revocation list.
        public var revocations: FileName?
        /// The age in days from which the list counts as missing.
        public var revocationDays = 7

        public init() {}
    }
}

/// Whether apps that were signed for development count as attested.
public enum DevelopmentApps: String, SettingsValue, CaseIterable {
    case refused, accepted
}

/// The App IDs of apps for iOS, `TEAM.bundle`.
public struct AppIDs: SettingsValue {
    public let all: [String]

    public init(settingsText text: String) throws(SettingsFault) {
        var all: [String] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let id = String(part.drop { $0 == " " })
            let team = id.prefix { $0 != "." }
            guard team.utf8.count == 10, id.utf8.count > 11, id.utf8.allSatisfy(Self.isOfName) else {
                throw SettingsFault(
                    "must be App IDs of a team of 10 characters and a bundle id, such as "
                        + "ABCDE12345.com.example.app, separated by commas")
            }
            all.append(id)
        }
        self.all = all
    }

    public var settingsText: String { all.joined(separator: ", ") }

    static func isOfName(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
            || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains(byte)
    }
}

/// Apps for Android: each a package name, `=`, and the SHA-256 of a certificate that signs it, in
/// hexadecimal. A package may occur several times with other certificates.
public struct AndroidApps: SettingsValue {
    private let entries: [Entry]

    private struct Entry: Sendable, Equatable {
        let package: String
        let digest: [UInt8]
    }

    public init(settingsText text: String) throws(SettingsFault) {
        var entries: [Entry] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let pieces = part.drop { $0 == " " }.split(separator: "=", omittingEmptySubsequences: false)
            guard pieces.count == 2, !pieces[0].isEmpty, pieces[0].utf8.allSatisfy(AppIDs.isOfName),
                let digest = Hex.decode(pieces[1].filter { $0 != ":" }.lowercased()), digest.count == 32
            else {
                throw SettingsFault(
                    "must be PACKAGE=DIGEST, with the SHA-256 of the signing certificate as 64 hexadecimal digits, "
                        + "separated by commas")
            }
            entries.append(Entry(package: String(pieces[0]), digest: digest))
        }
        self.entries = entries
    }

    public var settingsText: String {
        entries.map { "\($0.package)=\(Hex.encode($0.digest))" }.joined(separator: ", ")
    }

    /// The apps, each with all its certificates.
    public var all: [AndroidApp] {
        var packages: [String] = []
        for entry in entries where !packages.contains(entry.package) { packages.append(entry.package) }
        return packages.map { package in
            AndroidApp(
                package: package, signatureDigests: entries.filter { $0.package == package }.map(\.digest))
        }
    }
}

extension SettingsKeys {
    static let attestations: [SettingsKey] = [
        .optional(
            "attestation.ios_apps", \.attestations.appleApps, example: "ABCDE12345.com.example.app",
            "The App IDs of your apps for iOS, separated by commas: the team, a dot and the bundle id. Phones with "
                + "other apps are not attested."),
        .standard(
            "attestation.ios_development", \.attestations.development,
            "Apps that Xcode signed for development: refused, or accepted for tests."),
        .optional(
            "attestation.ios_roots", \.attestations.appleRoots, example: "app-attest-roots.pem",
            "Roots to trust for App Attest besides Apple's, for tests."),
        .optional(
            "attestation.android_apps", \.attestations.androidApps,
            example: "com.example.app=" + String(repeating: "0123456789abcdef", count: 4),
            "Your apps for Android, separated by commas: the package name, = and the SHA-256 of the certificate that "
                + "signs it, in hexadecimal. Name a package again for each further certificate."),
        .optional(
            "attestation.android_roots", \.attestations.androidRoots, example: "android-roots.pem",
            "Roots to trust for Android besides Google's: those of a manufacturer, or for tests."),
        .optional(
            "attestation.revocations", \.attestations.revocations, example: "attestation-status.json",
            "Google's list of revoked attestation keys. Fetch it regularly from "
                + "https://android.googleapis.com/attestation/status, and send SIGHUP. The time of the file counts as "
                + "the time of the list. Without it, no phone with Android has a valid attestation."),
        .number(
            "attestation.revocation_days", \.attestations.revocationDays, 1...90,
            "The age of that list in days from which the attestation of a phone with Android is not valid."),
    ]
}

extension Settings {
    /// Refuses a policy that no phone could meet, because the settings name no app; one without effect,
    /// because no phone approves; and one that gives phones codes beside demands on them.
    public func requireAttestable(_ policy: Policy) throws(SettingsFault) {
        let (ios, android) = (policy.attestation.ios, policy.attestation.android)
        if policy.answers == .website, let key = policy.demands.first {
            throw SettingsFault(
                "\(key) has no effect with answers: website, because no phone approves then: use answers: signed, or turn "
                    + "it off")
        }
        if policy.phoneCodes != .off, let key = policy.demandAgainstPhoneCodes {
            throw SettingsFault(
                "phone-codes must be off beside \(key): a code of the phone shows nothing of what \(key) demands")
        }
        if ios == .required, attestations.appleApps == nil {
            throw SettingsFault("attestation-ios: required needs the setting attestation.ios_apps")
        }
        if android == .required, attestations.androidApps == nil || attestations.revocations == nil {
            throw SettingsFault(
                "attestation-android: required needs the settings attestation.android_apps and attestation.revocations"
            )
        }
    }
}

extension Policy {
    /// The keys of the demands on phones that approve.
    fileprivate var demands: [String] {
        let none = Policy()
        let keys = [
            "min-app-android", "min-app-ios", "min-os-android", "min-os-ios", "min-patch-level", "screen-lock",
            "verified-boot",
        ]
        return ["attestation-android", "attestation-ios"].filter { text(of: $0) == "required" }
            + keys.filter { text(of: $0) != none.text(of: $0) }
    }
}
