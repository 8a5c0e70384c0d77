import Attestation
import Bytes
import Testing

@testable import Daemon

/// The settings of attestations.
@Suite struct AttestationSettingsTests {
    private static let digest = String(repeating: "0a", count: 32)
    private static let needed = "origin: https://login.example.com\nlisten: 127.0.0.1:8080\nstorage: sqlite:a.db\n"

    private func read(_ text: String) throws -> Settings {
        try SettingsReader.read(Array((Self.needed + text).utf8), file: "/etc/twoefay.yaml")
    }

    private func problems(_ text: String) -> String {
        do {
            _ = try read(text)
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test func appsAreRead() throws {
        let settings = try read(
            """
            attestation:
              ios_apps: ABCDE12345.com.example.app, ABCDE12345.com.example.other
              ios_development: accepted
              android_apps: com.example.app=\(Self.digest), com.example.app=0B:\(Self.digest.dropFirst(2)), org.example=\(Self.digest)
              revocations: list.json
              revocation_days: 30
            """)
        let wanted = settings.attestations
        #expect(wanted.appleApps?.all == ["ABCDE12345.com.example.app", "ABCDE12345.com.example.other"])
        #expect(wanted.development == .accepted && wanted.revocationDays == 30)
        let digest = [UInt8](repeating: 0x0a, count: 32)
        #expect(
            wanted.androidApps?.all == [
                AndroidApp(package: "com.example.app", signatureDigests: [digest, [0x0b] + digest.dropFirst()]),
                AndroidApp(package: "org.example", signatureDigests: [digest]),
            ])
        #expect(settings.openedPaths.contains { $0.path == "/etc/list.json" })
    }

    @Test(arguments: [
        ("ios_apps: com.example.app", "attestation.ios_apps must be App IDs"),
        ("ios_apps: ABCDE12345.", "attestation.ios_apps must be App IDs"),
        ("ios_apps: \"ABCDE12345.a b\"", "attestation.ios_apps must be App IDs"),
        ("android_apps: com.example.app", "attestation.android_apps must be PACKAGE=DIGEST"),
        ("android_apps: com.example.app=0a0b", "attestation.android_apps must be PACKAGE=DIGEST"),
        ("android_apps: \"=\(digest)\"", "attestation.android_apps must be PACKAGE=DIGEST"),
        ("ios_development: maybe", "attestation.ios_development must be one of refused, accepted"),
        ("revocation_days: 91", "attestation.revocation_days must be a whole number from 1 to 90"),
    ])
    func wrongValueIsReported(line: String, message: String) {
        #expect(problems("attestation:\n  \(line)\n").contains(message))
    }

    /// A policy that no phone could meet would keep everybody out.
    @Test func requiredAttestationNeedsItsSettings() throws {
        #expect(problems("policies:\n  attestation_ios: required\n").contains("needs the setting attestation.ios_apps"))
        let android = "policies:\n  attestation_android: required\n"
        #expect(problems(android).contains("attestation.android_apps and attestation.revocations"))
        let apps = "attestation:\n  android_apps: com.example.app=\(Self.digest)\n"
        #expect(problems(apps + android).contains("attestation.revocations"))
        _ = try read(apps + "  revocations: list.json\n" + android)
        _ = try read("policies:\n  attestation_ios: recorded\n  attestation_android: recorded\n")
    }

    /// With answers: website the website answers, and no phone meets a demand.
    @Test(arguments: [
        "attestation_ios: required", "attestation_android: required", "min_os_ios: \"17\"", "min_os_android: \"14\"",
        "min_app_ios: \"42\"", "min_app_android: \"42\"", "min_patch_level: 202607", "verified_boot: on",
        "screen_lock: on",
    ])
    func demandsNeedPhonesThatApprove(policy: String) throws {
        let able = """
            attestation:
              ios_apps: ABCDE12345.com.example.app
              android_apps: com.example.app=\(Self.digest)
              revocations: list.json

            """
        let key = policy.prefix { $0 != ":" }.split(separator: "_").joined(separator: "-")
        #expect(
            problems("\(able)policies:\n  answers: website\n  \(policy)\n")
                .contains("\(key) has no effect with answers: website"))
        for answers in ["signed", "certificate"] {
            _ = try read("\(able)policies:\n  answers: \(answers)\n  \(policy)\n")
        }
        let settings = try read("\(able)policies:\n  \(policy)\n")
        let website = try NewWebsite(name: "shop", policies: [("answers", "website")])
        #expect(throws: Failure.self) { try website.requireAttestable(settings) }
    }

    /// A code shows nothing of what these policies demand.
    @Test(arguments: ["min_uv: biometric", "min_os_ios: \"17\"", "screen_lock: on"])
    func demandsExcludeCodesOfPhones(policy: String) throws {
        let key = policy.prefix { $0 != ":" }.split(separator: "_").joined(separator: "-")
        #expect(problems("policies:\n  phone_codes: again\n  \(policy)\n").contains("must be off beside \(key)"))
        _ = try read("policies:\n  phone_codes: again\n  pin: required\n  attestation_ios: recorded\n")
    }

    @Test func websiteMayRecordWhatDecidesNothing() throws {
        _ = try read("policies:\n  answers: website\n  attestation_ios: recorded\n  attestation_android: recorded\n")
    }

    @Test func websiteCannotRequireWhatNoPhoneHas() throws {
        let settings = try read("")
        let website = try NewWebsite(name: "shop", policies: [("attestation-ios", "required")])
        #expect(throws: Failure.self) { try website.requireAttestable(settings) }
        let recorded = try NewWebsite(name: "shop", policies: [("attestation-ios", "recorded")])
        try recorded.requireAttestable(settings)
        let able = try read("attestation:\n  ios_apps: ABCDE12345.com.example.app\n")
        try website.requireAttestable(able)
    }
}
