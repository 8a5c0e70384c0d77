import Attestation
import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

@testable import Phone

/// Attestations and demands over the wire: from `twoefay phone`, whose platform is simulated, to
/// the website and the operator.
@Suite(.timeLimit(.minutes(15))) struct AttestedPhoneTests {
    private struct Scene {
        let relay: RunningRelay
        let shop: CurlCaller
        let owner: Owner
        let directory: TemporaryDirectory
        let root: SimulatedRoot
        let token: String
        let uri: String

        static let emptyList = #"{"entries":{}}"#

        /// Starts a relay that trusts a simulated root and has a fresh revocation list.
        init(_ kind: StoreKind, list: String = Self.emptyList, _ policies: String...) async throws {
            let directory = try TemporaryDirectory()
            self.directory = directory
            root = try SimulatedRoot(at: SystemTime().now())
            try TextFile.write(try root.certificate.pem(), to: directory("root.pem"))
            try TextFile.write(try root.key.pem().reveal(), to: directory("root.key"))
            chmod(directory("root.key"), 0o600)
            try TextFile.write(list, to: directory("list.json"))
            let android = try SimulatedPlatform(.android).setting.value
            let ios = try SimulatedPlatform(.ios).setting.value
            relay = try await RunningRelay.start(kind) { settings in
                try settings.set("attestation.ios_apps", to: ios)
                try settings.set("attestation.ios_roots", to: directory("root.pem"))
                try settings.set("attestation.android_apps", to: android)
                try settings.set("attestation.android_roots", to: directory("root.pem"))
                try settings.set("attestation.revocations", to: directory("list.json"))
            }
            try await relay.tool(
                ["website", "add", "shop", "--out", relay.directory.path, "--number", "0"] + policies)
            shop = relay.caller(
                certificatePath: relay.directory("shop.pem"), keyPath: relay.directory("shop.key"))
            owner = try Owner()
            let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
            uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
            token = try #require(registered["token"]?.string)
        }

        func enrol(_ arguments: String...) async throws -> Child.Ended {
            try await owner.begin(["enrol", uri, "--json", "--keys", owner.keys] + arguments).ended()
        }

        func attesting(_ platform: String) async throws -> Child.Ended {
            try await enrol("--attest", platform, "--attest-root", directory.path)
        }

        func login() async throws -> String {
            let asked = try await shop.curl("POST", "/login", json: #"{"username":"alice"}"#)
            return try #require(asked["challenge"]?.string, "\(asked)")
        }

        func approve(_ challenge: String, _ arguments: String...) async throws -> Child.Ended {
            try await owner.begin(["approve", "--challenge", challenge, "--keys", owner.keys] + arguments).ended()
        }

        func outcome(_ challenge: String) async throws -> LoginOutcome {
            let answer = try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
            return try LoginOutcome(try #require(answer.json?.object, "\(answer)"))
        }

        /// The check of a website that trusts the simulated root and not the relay.
        func check() throws -> AttestationCheck {
            AttestationCheck(
                origin: relay.origin, website: "shop",
                by: AttestationVerifier(
                    roots: AttestationRoots(apple: [root.certificate], android: [root.certificate]),
                    appleApps: [try SimulatedPlatform(.ios).app],
                    androidApps: [
                        AndroidApp(
                            package: try SimulatedPlatform(.android).app,
                            signatureDigests: [[UInt8](repeating: 7, count: 32)])
                    ],
                    revocationList: try RevocationList(
                        json: Array(#"{"entries":{}}"#.utf8), fetchedAt: SystemTime().now())))
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb], ["ios", "android"])
    func websiteVerifiesWhatThePhoneAttested(kind: StoreKind, platform: String) async throws {
        let scene = try await Scene(kind, "--attestation-ios", "required", "--attestation-android", "required")
        // Without an attestation the phone is refused, and the activation stays valid.
        let refused = try await scene.enrol()
        #expect(refused.status == 1 && refused.errors.contains("not_attested"), "\(refused)")
        #expect(refused.errors.contains("--attest"), "\(refused.errors)")

        let enrolled = try await scene.attesting(platform)
        #expect(enrolled.status == 0, "\(enrolled)")
        #expect(try enrolled.events.last?["attestation"] == "valid")
        let enrolment = try scene.owner.kept()
        #expect(enrolment.verdict == "valid" && enrolment.platform.rawValue == platform)

        let challenge = try await scene.login()
        let approved = try await scene.approve(challenge)
        #expect(approved.status == 0, "\(approved)")
        let outcome = try await scene.outcome(challenge)
        #expect(outcome.isSuccess && outcome.attestation?.verdict == .valid)
        #expect(outcome.attestation?.isAsserted == (platform == "ios" ? true : nil))

        // The website pins the key, and trusts nothing else of the relay.
        let phone = PinnedPhone(device: try #require(enrolment.device), key: enrolment.key.publicKey)
        let check = try scene.check()
        let attested = try check.verified(
            outcome.attestation, of: phone, token: scene.token, code: nil, at: SystemTime().now())
        #expect(attested.platform.rawValue == platform)
        let evidence = try LoginEvidence(outcome)
        if platform == "ios" {
            try check.verify(outcome.attestation, over: evidence.receipt, by: attested)
            #expect(throws: AttestationCheckFault.invalid(.signature)) {
                try check.verify(outcome.attestation, over: evidence.receipt + "x", by: attested)
            }
        } else {
            #expect(throws: AttestationCheckFault.noAssertion) {
                try check.verify(outcome.attestation, over: evidence.receipt, by: attested)
            }
        }

        // A second login: the counter of the assertion has grown.
        let again = try await scene.login()
        #expect(try await scene.approve(again).status == 0)

        // The website's list of phones, also after a change, and the operator.
        let user = try await scene.shop.curl("GET", "/user/alice")
        let listed = try #require(user["devices"]?.array?.first?.object?["attestation"]?.object, "\(user)")
        #expect(listed["verdict"] == "valid" && listed["evidence"]?.object?["statement"] != nil)
        let renamed = try await scene.shop.curl(
            "PATCH", "/user/alice/devices/\(phone.device)", json: #"{"name":"Ada"}"#)
        #expect(renamed["attestation"] == .object(listed))
        let shown = try await scene.relay.tool(["device", "show", phone.device])
        #expect(shown.contains(": valid.") && shown.contains("hardware: "), "\(shown)")
        let devices = try await scene.relay.tool(["device", "list", "alice", "--website", "shop"])
        #expect(devices.contains("ATTESTED") && devices.contains(" valid "), "\(devices)")
    }

    @Test func phoneShowsTheDemandsBeforeThePersonDecides() async throws {
        let scene = try await Scene(
            .file, "--min-os-ios", "17.4", "--min-app-ios", "42", "--screen-lock", "on")
        let enrolled = try await scene.enrol("--platform", "ios")
        #expect(try enrolled.events.last?["attestation"] == .null, "\(enrolled)")
        let challenge = try await scene.login()
        let silent = try await scene.approve(challenge)
        #expect(silent.status == 1 && silent.errors.contains("posture_unmet"), "\(silent)")
        #expect(silent.output.contains("system 17.4 or later, app 42 or later, a screen lock"), "\(silent.output)")
        #expect(
            silent.output.contains("not reported") && !silent.output.contains("not met")
                && silent.output.contains("system version, app version, screen lock"),
            "\(silent.output)")
        let old = try await scene.approve(
            challenge, "--posture", "os_version=17.3,app_version=42,screen_lock=yes")
        #expect(old.status == 1 && old.errors.contains("its system is older than required"), "\(old)")
        let bad = try await scene.approve(challenge, "--posture", "os_version=seventeen")
        #expect(bad.status == 2 && bad.errors.contains("--posture must be"), "\(bad.errors)")
        let right = try await scene.approve(
            challenge, "--posture", "os_version=17.4.1,app_version=42,screen_lock=yes")
        #expect(right.status == 0 && !right.output.contains("not reported"), "\(right)")
        let outcome = try await scene.outcome(challenge)
        #expect(outcome.isSuccess)
        #expect(
            outcome.attestation?.reported == [
                "os_version": "17.4.1", "app_version": "42", "screen_lock": true,
            ])
    }

    /// A website without demands gets no posture, as it gets no place.
    @Test func postureIsReportedOnlyIfAWebsiteAsks() async throws {
        let scene = try await Scene(.file)
        _ = try await scene.enrol()
        let challenge = try await scene.login()
        let approved = try await scene.approve(challenge, "--posture", "os_version=18")
        #expect(approved.status == 0, "\(approved)")
        let outcome = try await scene.outcome(challenge)
        let claims = try JSONReader.read(try JWS.parse(try LoginEvidence(outcome).receipt).payload).object
        #expect(outcome.attestation == nil && claims?["posture"] == nil)
    }

    /// SIGHUP reads a new revocation list, and a phone whose authority is on it no longer approves.
    @Test func reloadedListEndsApprovals() async throws {
        let scene = try await Scene(.file, "--attestation-ios", "required", "--attestation-android", "required")
        #expect(try await scene.attesting("android").status == 0)
        let challenge = try await scene.login()
        try TextFile.write(
            Array(#"{"entries":{"abc":{"status":"REVOKED"}}}"#.utf8), to: scene.directory("list.json"))
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded")
        let refused = try await scene.approve(challenge)
        #expect(refused.status == 1 && refused.errors.contains("bound again"), "\(refused)")
        #expect(refused.output.contains("attestation: this phone must be bound again"), "\(refused.output)")
    }

    /// A list that was cut off stops neither the start nor a reload. A phone whose key was on the
    /// former list does not come back.
    @Test func brokenListStopsNeitherStartNorReload() async throws {
        let scene = try await Scene(
            .file, list: "{", "--attestation-ios", "recorded", "--attestation-android", "required")
        #expect(try await scene.relay.logged("event=attestation.list").contains("level=warning"))
        let broken = try await scene.shop.curl("GET", "/ready")
        #expect(broken["status"] == "ready" && broken["dependencies"]?.object?["attestation"] == "missing", "\(broken)")
        let refused = try await scene.attesting("android")
        #expect(refused.status == 1 && refused.errors.contains("not_attested"), "\(refused)")
        try TextFile.write(Scene.emptyList, to: scene.directory("list.json"))
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded")
        #expect(try await scene.attesting("android").status == 0)
        let whole = try await scene.shop.curl("GET", "/ready")
        #expect(whole["dependencies"]?.object?["attestation"] == "ok", "\(whole)")

        try TextFile.write(#"{"entries":{"abc":{"status":"REVOKED"}}}"#, to: scene.directory("list.json"))
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded", number: 2)
        try TextFile.write("{", to: scene.directory("list.json"))
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded", number: 3)
        let answer = try await scene.approve(try await scene.login())
        #expect(answer.status == 1 && answer.errors.contains("bound again"), "\(answer)")
    }
}
