import Attestation
import Log
import Metrics
import TestSupport
import Testing
import World

@testable import Daemon

/// A revocation list that is missing, broken or old is shown, and stops nothing.
@Suite struct AttestationHealthTests {
    private static let age = "twoefay_attestation_revocations_age_seconds"
    private static let needed = "origin: https://login.example.com\nlisten: 127.0.0.1:8080\nstorage: sqlite:a.db\n"

    private let time = TestTime(start: SystemTime().now())
    private let sink = MemorySink()
    private let registry = Registry()
    private let directory: TemporaryDirectory
    private let named: Settings

    init() throws {
        directory = try TemporaryDirectory()
        named = try Self.settings("attestation:\n  revocations: \(directory("list.json"))\n")
    }

    private static func settings(_ text: String) throws -> Settings {
        try SettingsReader.read(Array((needed + text).utf8), file: "/etc/twoefay.yaml")
    }

    private func read(_ settings: Settings) throws -> AttestationFiles {
        var reader = LoadedFilesReader(settings: settings, now: time.now())
        let files = reader.attestations()
        #expect(reader.problems == [])
        return try #require(files)
    }

    private func write(_ list: String) throws { try TextFile.write(list, to: directory("list.json")) }

    private func started(_ settings: Settings, _ files: AttestationFiles) -> AttestationHealth {
        AttestationHealth(settings, files, time: time, log: Log(time: time, sink: sink), registry)
    }

    @Test func listIsNeededForAndroidOnly() throws {
        let digest = String(repeating: "0a", count: 32)
        let texts = [
            ("", false), ("attestation:\n  ios_apps: ABCDE12345.com.example.app\n", false),
            ("attestation:\n  android_apps: com.example.app=\(digest)\n", true),
        ]
        for (text, isNeeded) in texts {
            let settings = try Self.settings(text)
            let health = AttestationHealth(
                settings, try read(settings), time: time, log: Log(time: time, sink: sink), Registry())
            #expect(health.isNeeded == isNeeded, "\(text)")
            #expect(health.fault?.contains("attestation.revocations is not set") == true)
        }
        #expect(sink.drain() == [])
    }

    @Test(arguments: [nil, "", "{}", #"{"entries":{"x":{"status":"REVOKED"}}}"#])
    func unreadableListIsAWarning(list: String?) throws {
        if let list { try write(list) }
        let files = try read(named)
        let health = started(named, files)
        #expect(health.isNeeded && files.verifier.revocationList == nil)
        #expect(health.fault?.contains("list.json") == true && health.fault == files.problem)
        let lines = sink.drain()
        #expect(lines.count == 1 && lines[0].contains("level=warning event=attestation.list"), "\(lines)")
        // An age of 0 would be that of a fresh list.
        #expect(registry.number(Self.age) == nil)
    }

    /// The former list is used until it is too old, so that a revoked phone does not come back.
    @Test func brokenListAtAReloadKeepsTheFormerOne() throws {
        try write(#"{"entries":{"abc":{"status":"REVOKED"}}}"#)
        let first = try read(named)
        let health = started(named, first)
        #expect(health.fault == nil && registry.number(Self.age) != nil)
        try write("<html>")
        let verifier = health.replace(named, try read(named))
        #expect(verifier.revocationList?.count == 1)
        #expect(health.fault?.contains("is not Google's revocation list") == true)
        #expect(sink.drain().count == 1 && registry.number(Self.age) != nil)
        // The same after a second broken list, and all is well with a new one.
        #expect(health.replace(named, try read(named)).revocationList?.count == 1)
        try write(#"{"entries":{}}"#)
        #expect(health.replace(named, try read(named)).revocationList?.count == 0)
        #expect(health.fault == nil)
        // A list that is no longer set is given up.
        let without = try Self.settings("")
        #expect(health.replace(without, try read(without)).revocationList == nil)
        #expect(!health.isNeeded)
    }

    @Test func oldListIsMissing() throws {
        try write(#"{"entries":{}}"#)
        let list = try RevocationList(json: Array(#"{"entries":{}}"#.utf8), fetchedAt: time.now())
        let health = started(named, AttestationFiles(verifier: try read(named).verifier.with(list), problem: nil))
        #expect(health.fault == nil && registry.number(Self.age) == 0)
        time.advance(by: .seconds(7 * 86_400))
        #expect(health.fault == nil && registry.number(Self.age) == 7 * 86_400)
        time.advance(by: .seconds(1))
        #expect(health.fault?.contains("too old") == true)
    }
}
