import Bytes
import Domain
import JSON
import Testing
import World

@testable import Storage

/// The losses that a restore replays from an export of the audit.
@Suite struct ReplayPlanTests {
    private let user: UserID = Sample.id(1)
    private let phone: DeviceID = Sample.id(2)

    /// Makes a row as `twoefay audit export` writes it.
    private func row(
        _ event: String, _ number: Int = 1, _ members: [(String, JSONValue)] = []
    ) throws -> ExportedEvent {
        var object: JSONObject = [
            "id": 1, "at": "2026-11-27T10:00:00.000Z", "event": .string(event),
            "operation": .string((Sample.id(number) as OperationID).text),
        ]
        for (name, value) in members { object.set(name, value) }
        return try ExportedEvent(line: JSONWriter.write(object))
    }

    private func plan(_ rows: [ExportedEvent]) -> ReplayPlan {
        var plan = ReplayPlan()
        for row in rows { plan.add(row, isKnown: false) }
        return plan
    }

    private var ofUser: (String, JSONValue) { ("user", .string(user.text)) }
    private var ofPhone: [(String, JSONValue)] { [ofUser, ("device", .string(phone.text))] }

    @Test func lockIsReplayedUnlessItWasLifted() throws {
        let locked = try row("user.locked", 1, [ofUser])
        #expect(plan([locked]).steps.map(\.step) == [.lockUser(user)])
        #expect(plan([locked, try row("user.unlocked", 2, [ofUser])]).steps.isEmpty)
        #expect(plan([try row("user.unlocked", 2, [ofUser]), locked]).steps.map(\.step) == [.lockUser(user)])
        #expect(plan([try row("user.frozen", 1, [ofUser])]).steps.map(\.step) == [.lockUser(user)])
        let codes = try row("codes.locked", 1, [ofUser])
        #expect(plan([codes]).steps.map(\.step) == [.lockCodes(user)])
        #expect(plan([codes, try row("codes.unlocked", 2, [ofUser])]).steps.isEmpty)
    }

    @Test func phonesAreSuspendedAndRevokedByTheirAuthors() throws {
        let suspended = try row("device.suspended", 1, ofPhone + [("outcome", "website")])
        #expect(plan([suspended]).steps.map(\.step) == [.suspendPhone(phone, .website)])
        #expect(plan([suspended, try row("device.resumed", 2, ofPhone)]).steps.isEmpty)
        let unbound = try row("device.unbound", 3, ofPhone + [("outcome", "operator")])
        #expect(plan([suspended, unbound]).steps.map(\.step) == [.revokePhone(phone, .operator)])
    }

    @Test func usersAreDeletedAfterEverythingElse() throws {
        let steps = plan([
            try row("user.forgotten", 1, [ofUser]), try row("user.locked", 2, [ofUser]),
            try row("device.unbound", 3, ofPhone),
        ]).steps.map(\.step)
        #expect(steps.count == 3 && steps.last == .deleteUser(user))
    }

    @Test func endOfAWebsitesFormerKeysIsReplayed() throws {
        let shop: (String, JSONValue) = ("website", "shop")
        let changes: JSONValue = ["others_end": ["before": .null, "after": "2026-12-01T00:00:00.000Z"]]
        let ended = plan([try row("website.renewed", 1, [shop, ("outcome", "operator"), ("changes", changes)])])
        let end = try #require(Timestamp(rfc3339: "2026-12-01T00:00:00.000Z"))
        #expect(ended.steps.map(\.step) == [.endKeys("shop", end)])
        #expect(ended.notReplayed == ["website.renewed": 1])
        let beside = plan([try row("website.renewed", 1, [shop, ("outcome", "operator"), ("changes", [:])])])
        #expect(beside.steps.isEmpty && beside.notReplayed == ["website.renewed": 1])
        // The website has kept its key, which the copy has, too.
        let own = plan([try row("website.renewed", 1, [shop, ("outcome", "website"), ("changes", [:])])])
        #expect(own.steps.isEmpty && own.notReplayed.isEmpty)
    }

    @Test func websitesAndTheirKeysAreReplayed() throws {
        let key = [UInt8](repeating: 7, count: 32)
        let shop: (String, JSONValue) = ("website", "shop")
        let revoked = try row("website.key_revoked", 1, [shop, ("note", .string(Hex.encode(key)))])
        #expect(plan([revoked]).steps.map(\.step) == [.revokeKey("shop", key)])
        #expect(
            plan([try row("website.key_revoked", 1, [shop, ("note", "all")])]).steps.map(\.step)
                == [.revokeKey("shop", nil)])
        let disabled = try row("website.disabled", 1, [shop])
        #expect(plan([disabled]).steps.map(\.step) == [.disableWebsite("shop")])
        #expect(plan([disabled, try row("website.enabled", 2, [shop])]).steps.isEmpty)
    }

    @Test func usesVoidWhatMayHaveBeenUsed() throws {
        func voided(_ rows: ExportedEvent...) -> Set<RestoreEffect> { plan(rows).voided[user] ?? [] }
        #expect(voided(try row("code.verified", 1, [ofUser, ("outcome", "hotp")])) == [.hotp])
        #expect(voided(try row("code.verified", 1, [ofUser, ("outcome", "totp")])) == [])
        let answered = try row("challenge.answered", 1, [ofUser, ("outcome", "approve"), ("proof", "code")])
        #expect(voided(answered) == [.hotp, .recoveryCodes])
        #expect(voided(try row("challenge.answered", 1, ofPhone + [("proof", "signed")])) == [])
        #expect(voided(try row("user.unlocked", 1, [ofUser, ("outcome", "code")])) == [.recoveryCodes])
        #expect(voided(try row("device.bound", 1, ofPhone)) == [.activations])
    }

    @Test func replacedAndRemovedFactorsAreRemoved() throws {
        let bound = plan([try row("factor.bound", 1, [ofUser, ("outcome", "totp")])])
        #expect(bound.steps.map(\.step) == [.dropFactor(.totp, user)])
        #expect(bound.notReplayed == ["factor.bound": 1])
        let dropped = plan([try row("factor.dropped", 1, [ofUser, ("outcome", "hotp")])])
        #expect(dropped.steps.map(\.step) == [.dropFactor(.hotp, user)] && dropped.notReplayed.isEmpty)
    }

    @Test func grantsAreNamedAndNotReplayed() throws {
        let plan = plan([
            try row("user.registered", 1, [ofUser]), try row("user.registered", 2, [ofUser]),
            try row("website.added", 3, [("website", "club")]), try row("device.bound", 4, ofPhone),
            try row("challenge.asked", 5, [ofUser]), try row("daemon.started", 6),
        ])
        #expect(plan.steps.isEmpty)
        #expect(plan.notReplayed == ["user.registered": 2, "website.added": 1, "device.bound": 1])
        #expect(plan.rows == 6)
    }

    @Test func rowsOfTheCopyDoNotCount() throws {
        var plan = ReplayPlan()
        plan.add(try row("user.locked", 1, [ofUser]), isKnown: true)
        #expect(plan.steps.isEmpty && plan.rows == 0)
        #expect(plan.until == Timestamp(rfc3339: "2026-11-27T10:00:00.000Z"))
    }

    @Test(arguments: [
        (#"{"event":"user.locked""#, "JSON"), (#"["user.locked"]"#, "not an object"), ("{}", "event is missing"),
        (#"{"event":"a.b","operation":"12"}"#, "operation must be"),
        (#"{"event":"a.b","operation":"00000000000000000000000000000001","at":"now"}"#, "at must be a time"),
        (
            #"{"event":"a.b","operation":"00000000000000000000000000000001","at":"2026-11-27T10:00:00.000Z","user":"ada"}"#,
            "user must be 32"
        ),
    ]) func malformedLineIsNamed(line: String, reason: String) throws {
        let malformed = #expect(throws: ExportedEvent.Malformed.self) { try ExportedEvent(line: line.utf8) }
        #expect(malformed?.reason.contains(reason) == true, "\(malformed?.reason ?? "")")
    }

    @Test func precedingIdIsOneLess() {
        let zero = UserID(leading: [UInt8](repeating: 0, count: 15) + [1])
        #expect(VoidedRows.before(zero).bytes == [UInt8](repeating: 0, count: 16))
        let carry = UserID(leading: [UInt8](repeating: 7, count: 14) + [1, 0])
        #expect(VoidedRows.before(carry).bytes == [UInt8](repeating: 7, count: 14) + [0, 0xff])
    }
}
