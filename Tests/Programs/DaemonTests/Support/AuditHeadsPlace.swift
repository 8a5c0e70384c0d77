import Domain
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Daemon

/// A relay whose store has some audit rows, and a place for its heads.
struct AuditHeadsPlace {
    let rig: RelayRig
    let website: Website
    let directory: TemporaryDirectory
    let sink = MemorySink()
    let time = TestTime()
    var path: String { directory("heads/file.jsonl") }

    init(_ kind: StoreKind) async throws {
        rig = try await RelayRig(kind)
        website = try await rig.website("shop")
        directory = try TemporaryDirectory()
        _ = try Files.makeDirectory(directory("heads"), mode: 0o700)
    }

    func settings(_ target: AuditHeadsTarget) throws -> Settings {
        let text = "origin: https://login.example.com:8080\nlisten: 127.0.0.1:8080\nstorage: sqlite:twoefay.db\n"
        var settings = try SettingsReader.read(Array(text.utf8), file: directory("twoefay.yaml"))
        settings.auditHeads = target
        return settings
    }

    /// Opens the file, or another place.
    func open(_ target: AuditHeadsTarget? = nil) throws -> AuditHeadsExport {
        let settings = try settings(target ?? .file(FileName(path)))
        let log = Log(minimum: .info, time: rig.time, sink: sink)
        return try #require(try AuditHeadsExport.open(settings, rig.store, time: time, log: log))
    }

    func append(to export: AuditHeadsExport) async throws { try await rig.on { _ in await export.append() } }

    func lines() throws -> [String] { try TextFile.read(path).split(separator: "\n").map(String.init) }

    /// The heads of the file; a line that is not one fails the test.
    func heads() throws -> [AuditHead] { try lines().map { try #require(AuditHead(line: $0), "\($0)") } }

    func newest() async throws -> [AuditHead] {
        let store = rig.store
        let time = rig.time
        return try await rig.on { _ in
            var newest: [AuditHead] = []
            _ = try await AuditHeadFeed(store, time: time).round { heads in
                newest += heads
                return true
            }
            return newest
        }
    }

    func register(_ name: String) async throws {
        let website = website
        _ = try await rig.on { relay in
            try await relay.register(
                Registration(username: name, email: nil, phone: nil, displayName: nil, language: nil), by: website,
                as: relay.operations.new())
        }
    }
}
