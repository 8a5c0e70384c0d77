import Bytes
import Crypto
import Glibc
import KeyService
import TestSupport
import Testing
import World

@testable import Daemon

/// The checks of this machine, the settings and the store, with a healthy machine and with each of
/// its faults.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DoctorTests {
    @Test func healthyInstallationHasNoFailure() async throws {
        let site = try ExaminedInstallation()
        let findings = try await site.examined()
        #expect(findings.filter { $0.state == .failure } == [])
        for check in [
            "settings", "permissions", "secrets", "certificates", "descriptors", "disk.store", "clock", "randomness",
            "kernel", "store", "outbox",
        ] {
            #expect(findings.of(check).map(\.state) == [.ok], "\(check): \(findings.of(check))")
        }
        // The time of commits depends on the disk; `slowStoreIsAWarning` tests the judgement.
        #expect(findings.has("store.commits", .ok, "5 took ") || findings.has("store.commits", .warning, "5 took "))
        #expect(findings.has("port.listen", .warning, "nobody listens on 127.0.0.1:\(site.port.port), which is free"))
        #expect(findings.has("relays", .warning, "no relay runs"))
        #expect(findings.has("relay", .skipped, "--offline"))
        // Everything that is not well says what to do.
        for finding in findings where [.warning, .failure].contains(finding.state) {
            #expect(finding.remedy?.isEmpty == false, "\(finding)")
        }
    }

    /// The relay runs with these faults, so nothing else would name them before a sync or an enrolment.
    @Test func warningsOfTheStartAreNamed() async throws {
        let site = try ExaminedInstallation()
        try site.set("attestation.revocations", to: "nolist.json")
        try site.set("directories", to: "[{name: partners, website: nosuch, kind: csv, file: nofile.csv}]")
        let findings = try await site.examined()
        for name in ["nolist.json", "nofile.csv"] {
            #expect(findings.has("settings", .warning, ": \(site.path(name)): No such file"), "\(findings)")
        }
        #expect(findings.has("directories", .warning, "partners: the store has no website nosuch"), "\(findings)")
        #expect(!findings.contains { $0.state == .failure }, "\(findings)")
        // A file that exists is no fault. A directory in its place is.
        try TextFile.write("id,username\n", to: site.path("nofile.csv"))
        #expect(try await !site.examined().has("settings", .warning, "nofile.csv"))
        try site.set("directories", to: "[{name: partners, website: nosuch, kind: csv, file: .}]")
        #expect(try await site.examined().has("settings", .warning, "Is a directory"))
    }

    @Test func fewDescriptorsAreAFault() async throws {
        var site = try ExaminedInstallation()
        site.facts.descriptors = { (256, 256) }
        #expect(try await site.examined().has("descriptors", .warning, "of this shell is 256, so 224 connections"))
        try site.set("connections.limit", to: "5000")
        #expect(try await site.examined().has("descriptors", .failure, "connections.limit is 5000"))
        // The limit of the unit counts, not that of the shell.
        site.facts.unit = { _ in ["LimitNOFILE": "524288", "LoadState": "loaded", "ActiveState": "active"] }
        #expect(try await site.examined().has("descriptors", .ok, "of twoefayd.service is 524288"))
    }

    @Test(arguments: [
        (HostFacts.Space(free: 50 << 20, all: 100 << 30, freeInodes: 0.5), Finding.State.failure, "50.0 MiB free"),
        (HostFacts.Space(free: 50 << 30, all: 100 << 30, freeInodes: 0.005), .failure, "0 % of inodes"),
        (HostFacts.Space(free: 5 << 30, all: 100 << 30, freeInodes: 0.5), .warning, "5.0 GiB free, 5 %"),
        (HostFacts.Space(free: 900 << 20, all: 2 << 30, freeInodes: 0.5), .warning, "900.0 MiB free"),
        (HostFacts.Space(free: 20 << 30, all: 100 << 30, freeInodes: 0.5), .ok, "20.0 GiB free, 20 %"),
    ])
    func fullDiskIsAFault(_ space: HostFacts.Space, _ state: Finding.State, _ words: String) async throws {
        var site = try ExaminedInstallation()
        site.facts.space = { _ in space }
        try site.set("audit.heads", to: "heads.jsonl")
        let findings = try await site.examined()
        #expect(findings.has("disk.store", state, words) && findings.has("disk.audit", state, words), "\(findings)")
    }

    @Test func machineWithoutClockRandomnessOrHardeningIsAFault() async throws {
        var site = try ExaminedInstallation()
        site.facts.isClockSynchronised = { false }
        site.facts.hasRandomness = { false }
        site.facts.kernel = BareKernel()
        let findings = try await site.examined()
        #expect(findings.has("clock", .warning) && findings.has("randomness", .failure))
        #expect(findings.has("kernel", .warning, "seccomp"))
        try site.set("hardening", to: "required")
        #expect(try await site.examined().has("kernel", .failure, "hardening is incomplete"))
        try site.set("hardening", to: "off")
        #expect(try await site.examined().has("kernel", .warning, "hardening is off in the settings"))
    }

    @Test func stateOfTheUnitIsJudged() async throws {
        var site = try ExaminedInstallation()
        let cases: [(String, Finding.State, String)] = [
            ("LoadState=not-found\nActiveState=inactive\n", .warning, "is not installed (not-found)"),
            ("LoadState=loaded\nActiveState=failed\nSubState=failed\nNRestarts=3\n", .failure, "is failed"),
            ("LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=2\n", .warning, "restarted 2 times"),
            ("LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=0\n", .ok, "is active (running)"),
        ]
        for (text, state, words) in cases {
            site.facts.unit = { _ in SystemdUnit.parse(text) }
            #expect(try await site.examined().has("systemd", state, words), "\(text)")
        }
        #expect(SystemdUnit.parse("") == nil)
    }

    @Test func readableAndReplaceableFilesAreAFault() async throws {
        let site = try ExaminedInstallation()
        chmod(site.path("server.key"), 0o644)
        let readable = try await site.examined()
        #expect(readable.has("permissions", .failure, "server.key (tls.key) is readable by others"))
        #expect(readable.has("settings", .failure, "tls.key: \(site.path("server.key")): can be read by others"))
        chmod(site.path("server.key"), 0o600)
        chmod(site.directory("relay"), 0o777)
        #expect(try await site.examined().has("permissions", .failure, "others can replace files in"))
        chmod(site.directory("relay"), 0o700)
        chmod(site.settings, 0o622)
        #expect(try await site.examined().has("permissions", .failure, "others can write to"))
    }

    @Test func weakSecretsAreNamedWithoutTheirContent() async throws {
        let site = try ExaminedInstallation()
        try TextFile.write("hunter2\n", to: site.path("mail.password"))
        for (key, value) in [
            ("url", "smtp://127.0.0.1"), ("from", "a@b.example"), ("username", "u"), ("password_file", "mail.password"),
        ] {
            try site.set("mail.\(key)", to: value)
        }
        let weak = try await site.examined().of("secrets")
        #expect(
            weak.map(\.state) == [.warning] && weak[0].measured == "mail.password_file has fewer than 12 characters")
        try TextFile.write(String(repeating: "x", count: 40), to: site.path("mail.password"))
        #expect(try await site.examined().has("secrets", .warning, "repeats one or two characters"))
        try TextFile.write("Zq8#pL2v!nB7wRt4\n", to: site.path("mail.password"))
        #expect(try await site.examined().has("secrets", .ok))
        let counting = (0..<32).map { String($0 + 16, radix: 16) }.joined()
        try TextFile.write(counting + "\n", to: site.path("master.key"))
        #expect(try await site.examined().has("secrets", .warning, "master_key_file has a key that is not random"))
    }

    @Test(arguments: [
        ("abcdefghijklmno", "is a sequence"), ("Password1234", "beside words that are guessed first"),
        ("changeme-twoefay-secret", "beside words"), ("correct horse battery", nil), ("secret-Zq8#pL2v!nB7w", nil),
    ])
    func passwordThatIsGuessedFirstIsWeak(_ password: String, _ fault: String?) {
        let found = SettingsChecks.weakness(of: Array(password.utf8))
        #expect(fault.map { found?.contains($0) == true } ?? (found == nil), "\(found ?? "no fault")")
        #expect(found?.contains(password) != true)
    }

    /// A password in the settings themselves.
    @Test func passwordOfTheStoreIsJudged() async throws {
        let site = try ExaminedInstallation()
        try site.set("storage", to: "mariadb://twoefay:hunter2@127.0.0.1:1/twoefay")
        #expect(try await site.examined().has("secrets", .warning, "storage: the password has fewer than 12"))
    }

    @Test func controlSocketIsConnectedTo() async throws {
        let site = try ExaminedInstallation()
        #expect(try await site.examined().of("control") == [])
        try site.set("control.socket", to: "unix:control")
        #expect(try await site.examined().has("control", .warning, "No such file or directory"))
        let listener = try UnixSocket.listen(site.path("control"), mode: 0o600)
        defer { close(listener) }
        #expect(try await site.examined().has("control", .ok, "a relay listens at"))
        try site.set("control.auditors", to: "no-such-group")
        #expect(try await site.examined().has("control", .failure, "there is no group no-such-group"))
    }

    @Test func shortPINIsAcceptedAndRandomBytesAreNotRegular() {
        #expect(SettingsChecks.weakness(of: Array("482917".utf8), isPIN: true) == nil)
        #expect(SettingsChecks.weakness(of: Array("482917".utf8)) != nil)
        #expect(SettingsChecks.isRegular(Array(repeating: 7, count: 32)))
        for seed in 0..<200 {
            #expect(!SettingsChecks.isRegular(SeededRandomness(seed: UInt64(seed)).bytes(32)))
        }
    }

    @Test func certificatesThatEndAreAFault() async throws {
        let site = try ExaminedInstallation()
        let now = SystemTime().now()
        let ca = try CertificateAuthority(
            certificatePEM: try TextFile.bytes(site.path("ca.pem")),
            keyPEM: Secret(try TextFile.bytes(site.path("ca.key"))))
        func issue(days: Int, age: Int) throws {
            let server = try ca.issueServer(names: ["localhost"], days: days, at: now - .seconds(age * 86_400))
            try TextFile.write(try server.certificatePEM() + ca.certificatePEM(), to: site.path("server.pem"))
            try TextFile.write(server.keyPEM().reveal(), to: site.path("server.key"))
        }
        try issue(days: 30, age: 25)
        #expect(try await site.examined().has("certificates", .warning, "expires in 4 days"))
        try issue(days: 2, age: 5)
        let ended = try await site.examined()
        #expect(ended.has("certificates", .failure, "server.pem: expired at") && ended.has("settings", .failure))
    }

    @Test func storeThatIsMissingIsAFault() async throws {
        let site = try ExaminedInstallation()
        for end in ["", "-wal", "-shm"] { unlink(site.path("twoefay.db" + end)) }
        let findings = try await site.examined()
        #expect(findings.has("store", .failure, "does not exist") && findings.of("store.reads").isEmpty)
        // The other checks have their results.
        #expect(findings.has("settings", .ok) && findings.has("clock", .ok))
    }

    @Test func slowStoreIsAWarning() {
        func judged(_ milliseconds: [Int64]) -> Finding {
            StoreChecks.latency(
                "store.reads", milliseconds.map { .milliseconds($0) }, slow: .milliseconds(20),
                slowest: .milliseconds(250))
        }
        #expect(judged([3, 1, 2]).state == .ok && judged([3, 1, 2]).measured.contains("2.0 ms in the middle, 3.0 ms"))
        #expect(judged([30, 30, 30]).state == .warning)
        #expect(judged([1, 1, 300]).state == .warning)
    }

    @Test func clocksAreComparedWithinTheTimeOfTheQuestion() {
        let (first, last) = (Timestamp(seconds: 1000), Timestamp(seconds: 1004))
        func judged(_ other: Int64, resolution: Duration = .zero) -> Finding {
            ClockDifference.finding(
                "clock.x", "the other", Timestamp(seconds: other), between: first, last, resolution: resolution)
        }
        for time in [999, 1000, 1002, 1004, 1005] { #expect(judged(Int64(time)).state == .ok, "\(time)") }
        #expect(judged(998).state == .warning && judged(998, resolution: .seconds(1)).state == .ok)
        #expect(judged(1010).measured == "the other clock is 6 s ahead of this machine's")
        #expect(judged(1010).state == .warning && judged(1034).state == .failure && judged(900).state == .failure)
    }
}
