import Attestation
import Domain
import JSON
import Relay
import SimulatedAttestation
import Storage
import TestSupport
import Testing

/// The demands on phones that approve, and how phones learn of them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PhonePostureTests {
    private static func report(_ system: String?, _ app: String? = nil, _ lock: Bool? = nil) -> ReportedPosture {
        ReportedPosture(
            osVersion: system.flatMap { DottedVersion($0) }, appVersion: app.flatMap { DottedVersion($0) },
            hasScreenLock: lock)
    }

    /// Without attestations, what the phone reports counts.
    @Test(arguments: StoreKind.all) func reportedPostureMeetsTheDemands(kind: StoreKind) async throws {
        let shop = try await AttestedShop(
            kind, ["min-os-ios": "17.4", "min-app-ios": "42", "screen-lock": "on", "verified-boot": "on"])
        let bound = try await shop.bound(nil, says: .ios)
        let asked = try await shop.ada.login()
        #expect(
            try await shop.demands(on: bound) == [
                "os_version": "17.4", "app_version": "42", "verified_boot": true, "screen_lock": true,
            ])
        let unmet: [(ReportedPosture?, [PhoneDemands.Demand])] = [
            (nil, [.osVersion, .appVersion, .screenLock]),
            (Self.report("17.4"), [.appVersion, .screenLock]),
            (Self.report("17.3.9", "42", true), [.osVersion]),
            (Self.report("18", "41.9", true), [.appVersion]),
            (Self.report("18", "42", false), [.screenLock]),
        ]
        for (reported, demands) in unmet {
            #expect(
                try await shop.answer(by: bound, reporting: reported, asked.challenge)
                    == .failure(.postureUnmet(demands)))
        }
        let right = Self.report("17.4.0", "42", true)
        #expect(try await shop.answer(by: bound, reporting: right, asked.challenge) == .success(.success))
        let json = try await shop.ada.reported(asked.challenge).json()["attestation"]?.object
        #expect(json?["reported"] == ["os_version": "17.4.0", "app_version": "42", "screen_lock": true])
        #expect(json?["verdict"] == nil && json?["facts"] == nil)
    }

    /// The last report of a phone counts for a day. The report in an answer outranks it.
    @Test(arguments: StoreKind.all) func lastReportCompletesTheAnswer(kind: StoreKind) async throws {
        let shop = try await AttestedShop(
            kind, ["min-os-ios": "17.4", "min-app-ios": "42", "screen-lock": "on", "verified-boot": "on"])
        let bound = try await shop.bound(nil, says: .ios)
        func report(_ change: (inout DeviceReport) -> Void) async throws {
            let now = shop.rig.time.now()
            var report = DeviceReport(reportedAt: now, receivedAt: now)
            (report.osVersion, report.appVersion, report.hasScreenLock) = ("18.1", "42", true)
            change(&report)
            let (store, sent) = (shop.rig.store, report)
            _ = try await shop.rig.on { _ in try await store.store(sent, of: bound.credential) }
        }
        try await report { _ in }
        let asked = try await shop.ada.login()
        #expect(try await shop.answer(by: bound, asked.challenge) == .success(.success))
        let json = try await shop.ada.reported(asked.challenge).json()["attestation"]?.object
        #expect(json?["reported"] == ["os_version": "18.1", "app_version": "42", "screen_lock": true])
        #expect(
            try await shop.answer(by: bound, reporting: Self.report("17")) == .failure(.postureUnmet([.osVersion])))
        shop.rig.time.advance(by: .seconds(86_401))
        #expect(
            try await shop.answer(by: bound) == .failure(.postureUnmet([.osVersion, .appVersion, .screenLock])))
        try await report { $0.isRooted = true }
        #expect(try await shop.answer(by: bound) == .failure(.postureUnmet([.bootState])))
        shop.rig.time.advance(by: .seconds(1))
        try await report { $0.osVersion = "unknown" }
        #expect(try await shop.answer(by: bound) == .failure(.postureUnmet([.osVersion])))
        #expect(try await shop.answer(by: bound, reporting: Self.report("18")) == .success(.success))
    }

    /// A plain answer has no report. The last one of POST /device/status meets the demands.
    @Test(arguments: StoreKind.all) func plainAnswerIsJudgedByTheLastReport(kind: StoreKind) async throws {
        let shop = try await AttestedShop(
            kind,
            [
                "answers": "certificate", "min-os-android": "14", "min-app-android": "42", "screen-lock": "on",
                "verified-boot": "on",
            ])
        let bound = try await shop.bound(nil, says: .android)
        let asked = try await shop.ada.login()
        let answer = PhoneAnswer(approves: true)
        let refused = await refusal { try await shop.rig.post(answer, asked.challenge, by: bound) }
        #expect(refused == .postureUnmet([.osVersion, .appVersion, .screenLock]))
        let now = shop.rig.time.now()
        var report = DeviceReport(reportedAt: now, receivedAt: now)
        (report.osVersion, report.appVersion, report.hasScreenLock) = ("14", "42", true)
        let (store, sent) = (shop.rig.store, report)
        _ = try await shop.rig.on { _ in try await store.store(sent, of: bound.credential) }
        #expect(try await shop.rig.post(answer, asked.challenge, by: bound) == .success)
    }

    /// An assertion covers the answer alone. An older report does not outrank what was attested.
    @Test func assertionDoesNotCoverOlderReports() async throws {
        let shop = try await AttestedShop(.memory, ["attestation-ios": "recorded", "min-app-ios": "43"])
        let phone = try TestPhone(pushToken: "push")
        let attestation = try shop.apple(shop.subject(phone)) {
            $0.extensions = [0xa1] + CBORWriter.text("apple_bundle_version_01") + CBORWriter.text("42")
        }
        let bound = try await shop.bound(nil, attestation, phone)
        let now = shop.rig.time.now()
        var report = DeviceReport(reportedAt: now, receivedAt: now)
        report.appVersion = "43"
        let (store, sent) = (shop.rig.store, report)
        _ = try await shop.rig.on { _ in try await store.store(sent, of: bound.credential) }
        #expect(
            try await shop.answer(by: bound, assert: shop.assertion(1)) == .failure(.postureUnmet([.appVersion])))
    }

    /// A platform has its own minimum, and other platforms have none.
    @Test func minimumIsThatOfThePlatform() async throws {
        let shop = try await AttestedShop(.memory, ["min-os-ios": "17", "min-os-android": "14"])
        for (named, system, isMet) in [
            (.ios, "16", false), (.ios, "17", true), (.android, "13", false), (.android, "14", true), (.web, "1", true),
            (.other, "1", true),
        ] as [(Domain.Platform, String, Bool)] {
            let bound = try await shop.bound(nil, code: try await shop.ada.furtherCode(), says: named)
            let result = try await shop.answer(by: bound, reporting: Self.report(system))
            #expect(result == (isMet ? .success(.success) : .failure(.postureUnmet([.osVersion]))), "\(named)")
            try shop.rig.execute("DELETE FROM challenge")
            try shop.rig.execute("DELETE FROM device")
        }
    }

    /// A phone with Android attests its version once. A later report does not outrank that.
    @Test func attestedFactsOutrankReports() async throws {
        let shop = try await AttestedShop(
            .memory,
            [
                "attestation-android": "required", "min-os-android": "16", "min-app-android": "43",
                "min-patch-level": "202608",
            ])
        let phone = try TestPhone(pushToken: "old")
        let bound = try await shop.bound(nil, try shop.attestation(.android, of: phone), phone)
        let asked = try await shop.ada.login()
        let unmet: [PhoneDemands.Demand] = [.osVersion, .patchLevel, .appVersion]
        #expect(
            try await shop.demands(on: bound)?["unmet"] == .array(unmet.map { .string($0.rawValue) }))
        #expect(
            try await shop.answer(by: bound, reporting: Self.report("17", "99", true), asked.challenge)
                == .failure(.postureUnmet(unmet)))
        let code = try await shop.ada.furtherCode()
        let updated = try TestPhone(pushToken: "new")
        let attestation = try shop.android(shop.subject(updated, code: code), key: updated.key) {
            $0.osVersion = 160_000
            $0.packageVersion = 43
            $0.patchLevel = 202_608
        }
        let again = try await shop.bound(nil, code: code, attestation, updated)
        #expect(try await shop.demands(on: again)?["unmet"] == nil)
        #expect(try await shop.answer(by: again, asked.challenge) == .success(.success))
    }

    /// An assertion proves that the genuine app sent the answer, so its report is as good as an
    /// attestation.
    @Test func assertedReportOutranksTheEnrolment() async throws {
        let shop = try await AttestedShop(.memory, ["attestation-ios": "recorded", "min-app-ios": "43"])
        let phone = try TestPhone(pushToken: "push")
        let attestation = try shop.apple(shop.subject(phone)) {
            $0.extensions =
                [0xa1] + CBORWriter.text("apple_bundle_version_01") + CBORWriter.text("42")
        }
        let bound = try await shop.bound(nil, attestation, phone)
        let asked = try await shop.ada.login()
        #expect(try await shop.demands(on: bound)?["unmet"] == nil)
        let report = Self.report(nil, "43")
        #expect(
            try await shop.answer(by: bound, reporting: report, asked.challenge)
                == .failure(.postureUnmet([.appVersion])))
        #expect(
            try await shop.answer(
                by: bound, reporting: Self.report(nil, "42"), asked.challenge, assert: shop.assertion(1))
                == .failure(.postureUnmet([.appVersion])))
        #expect(
            try await shop.answer(by: bound, reporting: report, asked.challenge, assert: shop.assertion(2))
                == .success(.success))
    }

    /// The boot state counts as far as it is attested, also under `recorded`.
    @Test func rootedPhoneCannotApprove() async throws {
        let shop = try await AttestedShop(
            .memory, ["attestation-android": "recorded", "verified-boot": "on", "screen-lock": "on"])
        let phone = try TestPhone(pushToken: "push")
        let attestation = try shop.android(shop.subject(phone), key: phone.key) {
            $0.isLocked = false
            $0.bootState = 2
        }
        let bound = try await shop.bound(nil, attestation, phone)
        #expect(try await shop.stored(bound)?.verdict == .flawed)
        // The key needs no screen lock, whatever the phone reports.
        #expect(
            try await shop.answer(by: bound, reporting: Self.report(nil, nil, true))
                == .failure(.postureUnmet([.bootState, .locked, .screenLock])))
    }

    /// Phones learn nothing of a website without demands, and need not report anything.
    @Test func websiteWithoutDemandsAsksNothing() async throws {
        let shop = try await AttestedShop(.memory)
        let bound = try await shop.bound(nil)
        _ = try await shop.ada.login()
        #expect(try await shop.demands(on: bound) == nil)
    }

    /// A challenge keeps the demands with which it began.
    @Test func openChallengeKeepsItsDemands() async throws {
        let shop = try await AttestedShop(.memory)
        let bound = try await shop.bound(nil)
        let asked = try await shop.ada.login()
        let stricter = try await shop.changed(["screen-lock": "on"])
        #expect(try await stricter.answer(by: bound, asked.challenge) == .success(.success))
        #expect(try await stricter.answer(by: bound) == .failure(.postureUnmet([.screenLock])))
    }
}
