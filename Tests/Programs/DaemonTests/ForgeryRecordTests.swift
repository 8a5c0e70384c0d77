import Bytes
import Domain
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Daemon

/// The audit rows about forged rows, and their limits.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ForgeryRecordTests {
    private static func record(_ rig: RelayRig, _ time: TestTime, _ log: Log = Log(minimum: .error)) -> ForgeryRecord {
        let relay = rig.relay
        return ForgeryRecord(rig.store, time: time, log: log) { relay.operations.new() }
    }

    private static func trail(_ rig: RelayRig) throws -> [AuditEvent] {
        try rig.store.runBlocking(AuditTrail.newest(500)).filter { $0.event == "row.forged" }
    }

    @Test(arguments: StoreKind.all) func rowNamesWhatWasForged(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let record = Self.record(rig, TestTime())
        let key = String(repeating: "ab", count: 16)
        for row in ["user \(key)", "device_report \(key)", "website \(key)", "sent_code \(key):7"] {
            // The caller whose request found the row has not done it.
            try await rig.on { _ in
                await Actor.run(.website("shop")) { await record.record("row.forged", row: row) }
            }
        }
        try await rig.on { _ in await record.record("row.forged", row: "audit 9", reason: "no link has it") }
        let rows = try Self.trail(rig)
        #expect(rows.map(\.outcome) == ["user", "device_report", "website", "sent_code", "audit"])
        #expect(
            rows.map(\.note) == [
                "user \(key)", "device_report \(key)", "website \(key)", "sent_code \(key):7",
                "audit 9: no link has it",
            ])
        #expect(rows.allSatisfy { $0.actor == nil }, "\(rows)")
        #expect(rows.map { $0.user } == [key, nil, nil, nil, nil])
        #expect(rows.map { $0.device } == [nil, key, nil, nil, nil])
    }

    /// Each row once an hour, and no more than some of each table.
    @Test func auditIsNotFilled() async throws {
        let rig = try await RelayRig(.memory)
        let time = TestTime()
        let record = Self.record(rig, time)
        #expect(record.admit("user 1") == false)
        #expect(record.admit("user 1") == nil)
        for number in 2..<ForgeryRecord.mostOfTable { #expect(record.admit("user \(number)") == false) }
        #expect(record.admit("user last") == true)
        #expect(record.admit("user beyond") == nil)
        // Another table is not hidden by that.
        #expect(record.admit("device 1") == false)
        // A chain may first have a wrong link, and then be cut.
        #expect(record.admit("audit_link 1", "the link is not genuine") == false)
        #expect(record.admit("audit_link 1", "its chain ended") == false)
        #expect(record.admit("audit_link 1", "its chain ended") == nil)
        time.advance(by: ForgeryRecord.period - .seconds(1))
        #expect(record.admit("user 1") == nil && record.admit("user beyond") == nil)
        time.advance(by: .seconds(1))
        #expect(record.admit("user 1") == false && record.admit("user beyond") == false)
    }

    @Test func lastRowOfTheHourSaysSo() async throws {
        let rig = try await RelayRig(.memory)
        let record = Self.record(rig, TestTime())
        for number in 0..<(ForgeryRecord.mostOfTable + 5) {
            try await rig.on { _ in await record.record("row.forged", row: "user \(number)") }
        }
        let rows = try Self.trail(rig)
        #expect(rows.count == ForgeryRecord.mostOfTable)
        #expect(rows.count { $0.note?.contains("the log alone has further rows") == true } == 1)
        #expect(rows.last?.note?.contains("the log alone has further rows") == true)
    }

    /// The rows about a planted row of the audit are genuine, and cause no further ones.
    @Test(arguments: StoreKind.all) func forgedRowOfTheAuditIsRecordedOnce(kind: StoreKind) async throws {
        let place = try await AuditHeadsPlace(kind)
        try await place.register("ada")
        let record = Self.record(place.rig, place.time)
        let export = try #require(
            try AuditHeadsExport.open(
                place.settings(.file(FileName(place.path))), place.rig.store, time: place.time,
                log: Log(minimum: .info, time: place.rig.time, sink: place.sink)
            ) { fault in await record.record("row.forged", row: fault.row, reason: fault.reason) })
        defer { export.close() }
        try await place.append(to: export)
        #expect(try Self.trail(place.rig).isEmpty)
        let operation = String(repeating: "55", count: 16)
        try place.rig.forge(
            "INSERT INTO audit (id, operation, at, event) SELECT max(id) + 1000, x'\(operation)', max(at), 'user.locked' "
                + "FROM audit")
        for _ in 0..<5 {
            try await place.append(to: export)
            place.time.advance(by: .seconds(3_600))
        }
        let rows = try Self.trail(place.rig)
        #expect(rows.count == 1)
        #expect(rows.first?.outcome == "audit")
        #expect(place.sink.lines.count { $0.contains("event=audit.tampered") } == 1)
    }

    @Test func storeThatFailsLeavesALine() async throws {
        let rig = try await RelayRig(.memory)
        let sink = MemorySink()
        let record = Self.record(rig, TestTime(), Log(minimum: .info, time: rig.time, sink: sink))
        try rig.forge("DROP TABLE audit_detail")
        try await rig.on { _ in await record.record("row.forged", row: "user 1") }
        #expect(sink.lines.count { $0.contains("event=audit.unrecorded name=row.forged") } == 1)
        // It does not count, so the next discovery is written.
        #expect(record.admit("user 1") == false)
    }
}
