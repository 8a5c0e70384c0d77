import Attestation
import Crypto
import SimulatedAttestation
import Testing
import World

@Suite struct PostureTests {
    /// The facts of a phone with Android 15.0.1, patches of July 2026, version 42 of the app.
    private func android(_ change: (inout SimulatedAndroid) -> Void = { _ in }) throws -> AttestedDevice {
        var android = SimulatedAndroid()
        change(&android)
        let (authorities, key) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        return try AndroidAttestation.verify(
            try authorities.chain(android, key: key, challenge: [1]), key: key.publicKey, challenge: [1],
            apps: [SimulatedAndroid.app], roots: authorities.roots, revocationList: nil, at: SimulatedCertificate.start)
    }

    private func apple(version: String = "2.10") throws -> AttestedDevice {
        var apple = try SimulatedIPhone()
        apple.extensions = CBORWriter.map([("apple_bundle_version_01", CBORWriter.text(version))])
        return try AppAttestation.verify(
            try apple.object([1]), keyID: apple.keyID, clientDataHash: [1], apps: [SimulatedIPhone.app],
            roots: [apple.root.certificate], at: SimulatedCertificate.start)
    }

    private func version(_ text: String) throws -> DottedVersion { try #require(DottedVersion(text)) }

    @Test func metDemandsAreNotReported() throws {
        let posture = Posture(
            android: .init(osVersion: try version("15"), appVersion: try version("42")), patchLevel: 202_607,
            verifiedBoot: true, screenLock: true)
        #expect(posture.judge(try android { $0.needsNoAuthentication = false }) == Posture.Report())
        #expect(Posture().judge(try android()) == Posture.Report())
    }

    @Test func failedDemandsAreReported() throws {
        let posture = Posture(
            android: .init(osVersion: try version("15.0.2"), appVersion: try version("43")), patchLevel: 202_608,
            verifiedBoot: true, screenLock: true)
        let report = posture.judge(
            try android {
                $0.isLocked = false
                $0.bootState = 1
            })
        #expect(report.failed == [.osVersion, .patchLevel, .appVersion, .bootState, .locked, .screenLock])
        #expect(report.notAttested == [])
    }

    @Test func keyThatSignsForATimeAfterAnAuthenticationFails() throws {
        for isBySoftware in [false, true] {
            let device = try android {
                $0.needsNoAuthentication = false
                $0.authenticationTimeout = 30
                $0.isTimeoutBySoftware = isBySoftware
            }
            #expect(device.userAuthentication == .timed)
            #expect(Posture(screenLock: true).judge(device) == Posture.Report(failed: [.screenLock]))
        }
    }

    @Test func demandsThatNothingAttestsAreListed() throws {
        let posture = Posture(
            ios: .init(osVersion: try version("18"), appVersion: try version("2.9")), patchLevel: 202_607,
            verifiedBoot: true, screenLock: true)
        let report = posture.judge(try apple())
        #expect(report.failed == [])
        #expect(report.notAttested == [.osVersion, .bootState, .locked, .screenLock])
    }

    @Test func minimumIsThatOfThePlatform() throws {
        let posture = Posture(ios: .init(appVersion: try version("2.11")), android: .init(appVersion: try version("1")))
        #expect(posture.judge(try apple()).failed == [.appVersion])
        #expect(posture.judge(try android()).failed == [])
    }

    @Test func versionCodesOfEachSizeAreCompared() throws {
        // `versionCode` is ten digits in many apps; `longVersionCode` has 63 bits.
        for code in [2_026_071_501, Int.max] {
            let device = try android { $0.packageVersion = code }
            #expect(device.appVersion == String(code))
            let met = Posture(android: .init(appVersion: try version(String(code))))
            #expect(met.judge(device) == Posture.Report())
            let later = Posture(android: .init(appVersion: try version("\(code).1")))
            #expect(later.judge(device) == Posture.Report(failed: [.appVersion]))
        }
    }

    @Test func unusualVersionOfAndroidIsCompared() throws {
        let posture = Posture(android: .init(osVersion: try version("15")))
        #expect(posture.judge(try android { $0.osVersion = 1_000_000 }) == Posture.Report())
        #expect(posture.judge(try android { $0.osVersion = 0 }) == Posture.Report(failed: [.osVersion]))
    }

    @Test func patchLevelIsComparedByItsMonth() throws {
        for (level, month, isMet) in [
            (20_260_705, 202_607, true), (20_260_605, 202_606, false), (2_026_070, 0, false), (0, 0, false),
            (1_000_000_000, 0, false),
        ] {
            let device = try android { $0.patchLevel = level }
            #expect(device.patchLevel == Int64(month))
            let report = Posture(patchLevel: 202_607).judge(device)
            #expect(report == Posture.Report(failed: isMet ? [] : [.patchLevel]))
        }
    }

    @Test func unreadableVersionFails() throws {
        for text in ["2.10-beta", "1.2.3.4.5", ""] {
            let posture = Posture(ios: .init(appVersion: try version("2.9")))
            #expect(posture.judge(try apple(version: text)) == Posture.Report(failed: [.appVersion]))
        }
    }

    @Test(
        "Versions are compared by their numbers",
        arguments: [
            ("18", "18.0", true), ("18.0.1", "18", true), ("18", "18.0.1", false), ("9.9", "10", false),
            ("2.10", "2.9", true), ("0", "0", true), ("2100000000", "2099999999", true),
            ("2099999999", "2100000000", false), ("9223372036854775807", "9223372036854775806", true),
        ])
    func versionsAreCompared(version: String, least: String, isMet: Bool) throws {
        #expect(try self.version(version).isAtLeast(try self.version(least)) == isMet)
    }

    @Test(
        "Texts that are not versions are refused",
        arguments: ["", ".", "1.", ".1", "1..2", "a", "-1", "1.2.3.4.5", "9223372036854775808", "+1", "１"])
    func otherTextsAreRefused(text: String) {
        #expect(DottedVersion(text) == nil)
    }
}
