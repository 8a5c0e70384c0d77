import Domain
import HTTP
import JSON
import Log
import Relay
import TestSupport
import Testing
import World

@testable import API

/// `POST /device/status`: what a phone says about itself.
struct ReportTests {
    private static let values: JSONObject = [
        "os": "Android", "os_version": "16", "patch_level": 202_610, "app_version": "3.2.1", "model": "Pixel 10",
        "battery": 81, "screen_lock": true, "rooted": false,
    ]

    /// A phone of a user of the shop, with its key.
    private struct Bound {
        let rig: APIRig
        let shop: Site
        let key: TestPhone
        let device: String
        let site: Site
        /// The token of the phone's user.
        let token: String

        init(
            _ kind: StoreKind = .memory, rig: APIRig? = nil, user: String = "bob", policies: [String: String] = [:]
        ) async throws {
            let shop: Site
            if let rig {
                shop = Site(rig: rig, certificate: .website("shop"))
            } else {
                shop = try await APIRig(kind).site("shop", policies)
            }
            let (token, code) = try await shop.register(user)
            try await self.init(
                try TestPhone(pushToken: "push-of-\(user)"), at: shop, token: token, code: code)
        }

        /// Binds another phone of a user, whose website needs no approval for it.
        init(besides first: Bound, user: String = "bob") async throws {
            try await self.init(
                try TestPhone(pushToken: "second"), at: first.shop, token: first.token, code: first.furtherCode(user))
        }

        private init(_ key: TestPhone, at shop: Site, token: String, code: String) async throws {
            (rig, self.shop, self.key, self.token) = (shop.rig, shop, key, token)
            let bound = try await shop.verify(key, token: token, code: code)
            device = try #require(bound["device"]?.string, "\(bound.text)")
            site = Site(rig: shop.rig, certificate: key.certificate(device: try #require(DeviceID(device))))
        }

        func furtherCode(_ user: String = "bob") async throws -> String {
            let answer = await shop.send("POST", "/user/\(user)/activation")
            return try #require(answer["code"]?.string, "\(answer.text)")
        }

        func statement(
            _ values: JSONObject = ReportTests.values, device: String? = nil, after: Duration = .zero,
            website: String = "shop", header: (inout JSONObject) -> Void = { _ in },
            claims: (inout JSONObject) -> Void = { _ in }
        ) throws -> String {
            try key.status(
                values, device: device ?? self.device, origin: RelayRig.origin, website: website,
                at: rig.relay.time.now() + after, header: header, claims: claims)
        }

        func send(_ statement: String) async -> Response {
            await site.send("POST", "/device/status", ["status": .string(statement)])
        }

        /// The report as the website sees it.
        func seen() async -> JSONObject? { await shop.devices("bob").first?["report"]?.object }
    }

    @Test(arguments: StoreKind.all) func reportIsStoredAndShownToTheWebsite(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        #expect(await bound.shop.devices("bob").first?["report"] == .null)
        let sent = bound.rig.relay.time.now()
        let answer = await bound.send(try bound.statement())
        #expect(answer.status == 200, "\(answer.text)")
        #expect(answer["device"] == .string(bound.device))
        bound.rig.relay.time.advance(by: .seconds(90))
        var expected = Self.values
        expected.set("reported_at", .string(Timestamp(seconds: sent.seconds).rfc3339))
        expected.set("received_at", .string(sent.rfc3339))
        #expect(answer["report"]?.object == expected.with("age", 0))
        #expect(await bound.seen() == expected.with("age", 90))
    }

    /// A value that a phone leaves out is not reported any more, also if it was before.
    @Test(arguments: StoreKind.all) func laterReportReplacesAnEarlierOneWhole(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        #expect(await bound.send(try bound.statement()).status == 200)
        bound.rig.relay.time.advance(by: .seconds(1))
        let answer = await bound.send(try bound.statement(["battery": 12, "rooted": true, "future": "x"]))
        let report = try #require(answer["report"]?.object, "\(answer.text)")
        #expect(report["battery"] == 12 && report["rooted"] == true && report["future"] == nil)
        for name in ["os", "os_version", "patch_level", "app_version", "model", "screen_lock"] {
            #expect(report[name] == .null, "\(name)")
        }
        #expect(await bound.seen() == report)
    }

    /// Reports that arrive in another order, or again, do not replace a later one.
    @Test(arguments: StoreKind.all) func olderReportNeverReplacesANewerOne(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let (early, late) = (
            try bound.statement(["battery": 10]), try bound.statement(["battery": 20], after: .seconds(2))
        )
        let sameSecond = try bound.statement(["battery": 30], after: .seconds(2))
        for statement in [late, early, sameSecond, late] {
            let answer = await bound.send(statement)
            #expect(answer.status == 200 && answer["report"]?.object?["battery"] == 20, "\(answer.text)")
        }
        #expect(await bound.seen()?["battery"] == 20)
    }

    @Test func statementOfAnotherKindOrOwnerIsRefused() async throws {
        let bound = try await Bound()
        let other = try await Bound(rig: bound.rig, user: "eve")
        let statements = [
            try bound.statement(header: { $0["typ"] = "twoefay-token+jwt" }),
            try bound.statement(device: other.device), try other.statement(),
            try other.statement(device: bound.device), try bound.statement(website: "bank"),
            try bound.statement(claims: { $0["v"] = 2 }), try bound.statement(claims: { $0["iat"] = "now" }), "a.b.c",
        ]
        for (index, statement) in statements.enumerated() {
            let answer = await bound.send(statement)
            #expect(answer.status == 400 && answer.faults == ["status format"], "\(index): \(answer.text)")
        }
        #expect(await bound.seen() == nil)
        // A report cannot change the device token either.
        let token = await bound.site.send("POST", "/device", ["dev_token": .string(try bound.statement())])
        #expect(token.faults == ["dev_token format"])
    }

    /// A report that was held back is not new, and a clock that is ahead would block later reports.
    @Test(arguments: [-301, 301]) func reportOfAnotherTimeIsRefused(seconds: Int) async throws {
        let bound = try await Bound()
        let answer = await bound.send(try bound.statement(after: .seconds(seconds)))
        #expect(answer.status == 400 && answer.faults == ["status mismatch"], "\(answer.text)")
        #expect(answer["detail"]?.string?.contains("/time") == true, "\(answer.text)")
        let near = await bound.send(try bound.statement(after: .seconds(seconds.signum() * 300)))
        #expect(near.status == 200, "\(near.text)")
    }

    @Test(
        arguments: [
            ("os", "", "must not be empty"), ("os", 1, "must be a string"),
            ("os_version", .string(String(repeating: "1", count: 33)), "at most 32"),
            ("model", .string(String(repeating: "m", count: 65)), "at most 64"),
            ("app_version", "a\u{202e}b", "U+202E"),
            ("battery", 101, "from 0 to 100"), ("battery", -1, "from 0 to 100"),
            ("battery", .number(50.5), "whole number"),
            ("patch_level", 2026, "from 200001"), ("screen_lock", "yes", "true or false"),
            ("rooted", 1, "true or false"),
        ] as [(String, JSONValue, String)])
    func wrongValueIsRefused(name: String, value: JSONValue, message: String) async throws {
        let bound = try await Bound()
        let answer = await bound.send(try bound.statement(claims: { $0[name] = value }))
        #expect(answer.status == 400 && answer.faults == ["status format"], "\(answer.text)")
        let detail = answer["detail"]?.string ?? ""
        #expect(detail.contains("\(name) ") && detail.contains(message), "\(detail)")
        #expect(await bound.seen() == nil)
    }

    @Test func phoneMayReportTenTimesAMinute() async throws {
        let bound = try await Bound()
        let other = try await Bound(rig: bound.rig, user: "eve")
        for second in 0..<10 {
            #expect(await bound.send(try bound.statement(after: .seconds(second))).status == 200)
        }
        let limited = await bound.send(try bound.statement())
        #expect(limited.status == 429 && limited.fields["retry-after"] == "60", "\(limited.text)")
        #expect(await other.send(try other.statement()).status == 200)
        bound.rig.relay.time.advance(by: .seconds(60))
        #expect(await bound.send(try bound.statement()).status == 200)
    }

    @Test(arguments: StoreKind.all) func suspendedPhoneReportsNothing(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        try bound.rig.relay.execute("UPDATE device SET state = 'suspended'")
        #expect(await bound.send(try bound.statement()).status == 401)
        #expect(try bound.rig.relay.count("SELECT count(*) FROM device_report") == 0)
        #expect(await bound.shop.send("POST", "/device/status", ["status": "x"]).status == 403)
    }

    /// A report that was changed by SQL is not shown, and the phone cannot hide that by another
    /// report. The user and the other phones are shown.
    @Test(arguments: StoreKind.all) func changedReportAloneIsNotShown(kind: StoreKind) async throws {
        let bound = try await Bound(kind, policies: ["further-factors": "website"])
        let rig = bound.rig
        let second = try await Bound(besides: bound)
        for phone in [bound, second] { #expect(await phone.send(try phone.statement()).status == 200) }
        try rig.relay.forge(
            "UPDATE device_report SET rooted = 0, os_version = '99' WHERE device_id = x'\(bound.device)'")
        let user = await bound.shop.send("GET", "/user/bob")
        #expect(user.status == 200, "\(user.text)")
        let devices = await bound.shop.devices("bob")
        let changed = try #require(devices.first { $0["device"] == .string(bound.device) })
        #expect(changed["report"] == .null && changed["report_forged"] == true)
        let genuine = try #require(devices.first { $0["device"] == .string(second.device) })
        #expect(genuine["report"]?.object?["os_version"] == "16" && genuine["report_forged"] == nil)
        let renamed = await bound.shop.send("PATCH", "/user/bob/devices/\(bound.device)", ["name": "Old"])
        #expect(renamed["name"] == "Old" && renamed["report"] == .null && renamed["report_forged"] == true)
        #expect(rig.relay.sink.drain().contains { $0.contains("event=row.forged") && $0.contains(bound.device) })
        #expect(await bound.send(try bound.statement(after: .seconds(9))).status == 500)
    }

    /// Somebody who finds an old phone in the store must not learn its system and its model.
    @Test(arguments: StoreKind.all) func reportIsDeletedWithItsPhone(kind: StoreKind) async throws {
        let bound = try await Bound(kind, policies: ["further-factors": "website"])
        let reports = "SELECT count(*) FROM device_report"
        #expect(await bound.send(try bound.statement()).status == 200)
        // The same key is bound again.
        let code = try await bound.furtherCode()
        let again = try await bound.shop.verify(bound.key, token: bound.token, code: code)
        #expect(again.status == 200 && again["device"] == .string(bound.device), "\(again.text)")
        #expect(try bound.rig.relay.count(reports) == 0)
        #expect(await bound.seen() == nil)
        #expect(await bound.send(try bound.statement(["battery": 7])).status == 200)
        // The phone repeats its request, because it has lost the answer.
        _ = try await bound.shop.verify(bound.key, token: bound.token, code: code)
        #expect(await bound.seen()?["battery"] == 7)
        #expect(await bound.shop.send("DELETE", "/user/bob/devices/\(bound.device)").status == 204)
        #expect(try bound.rig.relay.count(reports) == 0)
    }

    @Test(arguments: StoreKind.all) func reportIsDeletedWithItsUser(kind: StoreKind) async throws {
        let bound = try await Bound(kind)
        let other = try await Bound(rig: bound.rig, user: "eve")
        for phone in [bound, other] { #expect(await phone.send(try phone.statement()).status == 200) }
        #expect(await bound.shop.send("DELETE", "/user/bob").status == 204)
        #expect(
            try bound.rig.relay.count(
                "SELECT count(*) FROM device_report r JOIN device d ON d.id = r.device_id") == 1)
        #expect(try bound.rig.relay.count("SELECT count(*) FROM device_report") == 1)
    }
}

extension JSONObject {
    fileprivate func with(_ name: String, _ value: JSONValue) -> JSONObject {
        var object = self
        object.set(name, value)
        return object
    }
}
