import Attestation
import Domain
import JSON
import Testing

/// The policies about attestations and postures, as they are written and read.
@Suite struct PostureKeysTests {
    private static let keys: [(key: String, text: String)] = [
        ("attestation-android", "recorded"), ("attestation-ios", "required"), ("min-app-android", "4200000123"),
        ("min-app-ios", "3.14"), ("min-os-android", "14"), ("min-os-ios", "17.4.1"), ("min-patch-level", "202607"),
        ("screen-lock", "on"), ("verified-boot", "on"),
    ]

    @Test func everyKeyIsWrittenAndReadBack() throws {
        var policy = Policy()
        for (key, text) in Self.keys {
            #expect(Policy.keys.contains(key))
            try policy.set(key, to: text)
            #expect(policy.text(of: key) == text)
        }
        #expect(try Policy().changed(by: policy.json) == policy)
        #expect(policy.attestation == AttestationRequirements(ios: .required, android: .recorded))
        #expect(policy.posture.ios.osVersion == DottedVersion("17.4.1"))
        #expect(policy.asksPosture && !Policy().asksPosture)
    }

    @Test(arguments: [
        ("attestation-ios", "yes"), ("attestation-android", ""), ("attestation", "required"), ("min-os-ios", ""),
        ("min-os-ios", "17."), ("min-os-ios", "1.2.3.4.5"), ("min-app-ios", "v3"), ("min-app-android", "-1"),
        ("min-app-android", "99999999999999999999"), ("min-patch-level", "2026-07"), ("min-patch-level", "202613"),
        ("min-patch-level", "202600"), ("min-patch-level", "20267"), ("screen-lock", "yes"), ("verified-boot", "true"),
    ])
    func malformedValueIsRefused(key: String, text: String) {
        var policy = Policy()
        #expect(throws: Policy.Fault.self) { try policy.set(key, to: text) }
        #expect(policy == Policy())
        // It is refused in the store, too, and never read as a weaker policy.
        let stored = #"{"\#(key)":"\#(text)"}"#
        if Policy.keys.contains(key) {
            #expect(throws: Policy.Fault.self) { try Policy().changed(by: stored) }
        }
    }

    /// A group of users may have demands of its own. Whether attestations count is the website's.
    @Test func groupsHaveDemandsOfTheirOwn() {
        for (key, _) in Self.keys {
            #expect(Policy.groupKeys.contains(key) == !key.hasPrefix("attestation"))
        }
    }

    @Test(
        arguments: [
            ("{}", ReportedPosture()), (#"{"os_version":"18.1"}"#, ReportedPosture(osVersion: DottedVersion("18.1"))),
            (
                #"{"os_version":"18","app_version":"42","screen_lock":false}"#,
                ReportedPosture(osVersion: DottedVersion("18"), appVersion: DottedVersion("42"), hasScreenLock: false)
            ),
        ] as [(String, ReportedPosture)])
    func reportIsRead(text: String, report: ReportedPosture) throws {
        #expect(ReportedPosture(json: try JSONReader.read(Array(text.utf8))) == report)
    }

    @Test(arguments: [
        "[]", "\"18\"", #"{"os_version":18}"#, #"{"os_version":"eighteen"}"#, #"{"screen_lock":"yes"}"#,
        #"{"rooted":0}"#, #"{"jailbroken":false}"#, #"{"app_version":null}"#,
        #"{"os_version":"\#(String(repeating: "1", count: 65))"}"#,
    ])
    func otherReportIsRefused(text: String) throws {
        #expect(ReportedPosture(json: try JSONReader.read(Array(text.utf8))) == nil)
    }
}
