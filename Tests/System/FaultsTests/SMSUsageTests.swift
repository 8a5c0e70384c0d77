import EventLoop
import JSON
import TestSupport
import Testing

/// The text messages in `twoefay status`: those that gateways accepted and will bill.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct SMSUsageTests {
    @Test func smsMessagesSegmentsAndCostsAreRecorded() async throws {
        // For that number the outcome is always ambiguous.
        let gateway = try await TestGateway { asked in
            switch asked.query["to"]?.suffix(1) {
            case "7": .hangUp
            case "8": .status(400)
            default: .status(202)
            }
        }
        let directory = try TemporaryDirectory()
        try TextFile.write("secret\n", to: directory("password"))
        let fixture = try await Fixture.start { settings in
            try settings.set(
                "sms.gateways",
                to: "[{name: one, kind: kannel, url: \"\(gateway.url)/cgi-bin/sendsms\", username: tester, "
                    + "password_file: \"\(directory("password"))\", cost: {\"+49\": 0.075, \"+43\": 0.09}}]")
            try settings.set("sms.allow", to: "[\"+49\", \"+43\"]")
        }
        let before = try await status(fixture)
        #expect(!before.lines.contains("Text messages") && before.lines.contains("and 1 running relay."))
        let numbers = ["+4915112345671", "+4915112345677", "+4366012345671", "+4366012345678"]
        for (user, number) in numbers.enumerated() {
            let registered = try await fixture.shop.send(
                "POST", "/register", ["username": .string("user-\(user)"), "phone": .string(number)])
            _ = try await fixture.login(try Fixture.registered(registered).token)
        }
        try await fixture.relay.logged("event=sms.undeliverable")
        for number in 1...3 { try await fixture.relay.logged("event=sms.accepted", number: number) }
        // The usage is written a moment later.
        let sent = "SELECT coalesce(sum(sent), 0) FROM sms_usage WHERE length(scope) = 0 AND length(period) = 10"
        while try fixture.relay.count(sent) < 3 {
            await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(50)) }
        }
        let after = try await status(fixture)
        let total = "Text messages today: 4 started, 3 sent in 3 segments, for 0.24."
        #expect(after.lines.contains(total), "\(after.lines)")
        #expect(after.lines.contains("  +49: 2 started, 2 sent in 2 segments, for 0.15."))
        #expect(after.lines.contains("  +43: 2 started, 1 sent in 1 segment, for 0.09."))
        let today = try #require(after.json["sms"]?.object?["today"]?.object)
        #expect(today["messages"]?.integer == 4 && today["sent"]?.integer == 3 && today["parts"]?.integer == 3)
        #expect(today["cost"]?.string == "0.24")
        // The message without an answer was sent twice, under one id.
        let twice = gateway.asked.filter { $0.query["to"]?.hasSuffix("77") == true }
        #expect(twice.count == 2 && Set(twice.map { $0.query["binfo"] }).count == 1)
    }

    private func status(_ fixture: Fixture) async throws -> (lines: String, json: JSONObject) {
        let lines = try await fixture.relay.tool("status")
        let json = try JSONReader.read(Array(try await fixture.relay.tool("status", "--json").utf8)).object
        return (lines, try #require(json))
    }
}
