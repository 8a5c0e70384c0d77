import JSON
import TestSupport
import Testing

/// The choice of the gateway for a text message, and messages that are never sent, as the website sees both.
@Suite("The routing of text messages", .timeLimit(.minutes(15)), .mayBlock) struct SMSRoutingTests {
    private func arrive(_ shop: APIClient, _ name: String, _ number: String, more: JSONObject = [:]) async throws {
        var about = more
        about.set("phone", .string(number))
        try await shop.register(name, with: about)
    }

    /// Logs in with the code that the gateway received.
    private func logIn(
        _ shop: APIClient, _ name: String, by gateway: TestGateway, _ number: Int,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let login = try await CodeLogin(shop, name)
        #expect(login.factor == "sms", sourceLocation: location)
        try await login.succeeds(by: "sms", worth: "restricted", try await gateway.code(number, location), location)
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func numberPrefixSelectsTheGateway(_ kind: StoreKind) async throws {
        let (country, network) = (try await TestGateway.taking(), try await TestGateway.taking())
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try Outgoing.set(
                gateways: [
                    Outgoing.gateway("country", country.url, files, ", prefixes: [\"+49\"], cost: {\"+49\": 0.075}"),
                    Outgoing.gateway("network", network.url, files, ", prefixes: [\"+4917\", \"+43\"]"),
                ], files, in: &text)
        } _: { fixture in
            let shop = try await fixture.website("shop")
            let routes = [
                ("ana.country", "+4915112345678", country, 1), ("ben.network", "+4917112345678", network, 1),
                ("cyd.abroad", "+4366012345678", network, 2), ("dan.country", "+4930123456", country, 2),
            ]
            for (name, number, gateway, count) in routes {
                try await arrive(shop, name, number)
                try await logIn(shop, name, by: gateway, count)
                #expect(gateway.asked.last?.query["to"] == number)
            }
            #expect(country.asked.count == 2 && network.asked.count == 2)
            // The begun messages and their cost, in millionths. A network that the settings name is counted
            // separately.
            try await fixture.relay.logged("event=sms.accepted", number: 4)
            let tallies = [("", 4, 150_000), ("+49", 2, 150_000), ("+4917", 1, 0), ("+43", 1, 0)]
            for (scope, messages, cost) in tallies {
                let rows =
                    "SELECT count(*) FROM sms_usage WHERE length(period) = 10 AND scope = '\(scope)' "
                    + "AND messages = \(messages) AND sent = \(messages) AND cost = \(cost)"
                #expect(try fixture.relay.count(rows) == 1, "\(scope)")
            }
        }
    }

    /// The first gateway is down before the first message; the second message does not try it for long.
    @Test func nextGatewayIsUsedWhenTheFirstIsDown() async throws {
        let (first, second) = (try await TestGateway.taking(), try await TestGateway.taking())
        await first.goDown()
        let files = try TemporaryDirectory()
        try await Fixture.run { text throws in
            try Outgoing.set(
                gateways: [
                    Outgoing.gateway("first", first.url, files),
                    Outgoing.gateway("second", second.url, files, ", priority: 1"),
                ], files, in: &text)
        } _: { fixture in
            let shop = try await fixture.website("shop")
            try await arrive(shop, "ana.failover", "+4915112345678")
            for number in 1...2 {
                try await logIn(shop, "ana.failover", by: second, number)
                try await fixture.relay.logged("event=sms.accepted", number: number)
            }
            // A gateway that refuses the credentials is skipped, too.
            try await first.comeBack()
            first.answer { _ in .status(403, "Authorization failed for sendsms") }
            try await arrive(shop, "ben.failover", "+4915112345679")
            try await logIn(shop, "ben.failover", by: second, 3)
            #expect(second.asked.count == 3)
        }
    }

    /// A limit of two, and numbers, with whether each may get one more message.
    struct Limit: Sendable, CustomTestStringConvertible {
        let name: String
        let kind: StoreKind
        let sendings: [(number: String, isSent: Bool)]
        var testDescription: String { name }

        static let all = [
            // The limit of a user, of a country, and of the day.
            Limit(
                name: "user_day", kind: .file,
                sendings: [
                    ("+491511000001", true), ("+491511000001", true), ("+491511000001", false),
                    ("+491511000002", true),
                ]),
            Limit(
                name: "prefix_day", kind: .mariadb,
                sendings: [
                    ("+491511000001", true), ("+491511000002", true), ("+491511000003", false),
                    ("+43660000004", true),
                ]),
            Limit(
                name: "day", kind: .file,
                sendings: [("+491511000001", true), ("+491511000002", true), ("+43660000004", false)]),
        ]
    }

    @Test(arguments: Limit.all) func smsLimitEndsSending(_ limit: Limit) async throws {
        let (gateway, mail) = (try await TestGateway.taking(), try await TestMailServer.start())
        let files = try TemporaryDirectory()
        try await Fixture.run(limit.kind) { text throws in
            try Outgoing.set(
                gateways: [Outgoing.gateway("one", gateway.url, files)], limits: [limit.name: 2], mail: mail, files,
                in: &text)
        } _: { fixture in
            let shop = try await fixture.website("shop")
            for number in Set(limit.sendings.map(\.number)) {
                try await arrive(
                    shop, "user\(number.dropFirst())", number,
                    more: ["email": .string("user\(number.dropFirst())@example.org")])
            }
            var sent = 0
            for (number, isSent) in limit.sendings {
                let name = "user\(number.dropFirst())"
                if isSent {
                    sent += 1
                    try await logIn(shop, name, by: gateway, sent)
                } else {
                    try await goesOnToMail(fixture, shop, name, "limited", mail)
                }
            }
            #expect(gateway.asked.count == sent)
            let begun = "SELECT messages FROM sms_usage WHERE length(period) = 10 AND scope = ''"
            #expect(try fixture.relay.count(begun) == Int64(sent))
        }
    }

    /// A message that cannot be sent has its reason in the step, and the mail after it logs in.
    private func goesOnToMail(
        _ fixture: Fixture, _ shop: APIClient, _ name: String, _ reason: String, _ mail: TestMailServer
    ) async throws {
        let login = try await CodeLogin(shop, name)
        #expect(login.asked["login"] == "unverified" && login.factor == "mail")
        try await fixture.relay.logged("event=sms.limited challenge=\(login.challenge)")
        try await fixture.relay.logged("event=mail.accepted challenge=\(login.challenge)")
        let result = try await login.result()
        #expect(result["login"] == "wait" && result.steps == "sms refused (\(reason)), mail sent", "\(result)")
        try await login.succeeds(by: "mail", worth: "low", try await mail.code(1, to: "\(name)@example.org"))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func disallowedCountryGetsNoSMS(_ kind: StoreKind) async throws {
        let (gateway, mail) = (try await TestGateway.taking(), try await TestMailServer.start())
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try Outgoing.set(gateways: [Outgoing.gateway("one", gateway.url, files)], mail: mail, files, in: &text)
        } _: { fixture in
            let shop = try await fixture.website("shop")
            try await arrive(shop, "ana.far", "+12025550123", more: ["email": "ana.far@example.org"])
            try await goesOnToMail(fixture, shop, "ana.far", "not_allowed", mail)
            // A user without another factor cannot log in, and the website sees the reason.
            try await arrive(shop, "ben.far", "+12025550124")
            let login = try await CodeLogin(shop, "ben.far")
            #expect(try await login.result().steps == "sms refused (not_allowed)")
            #expect(try await login.handIn("123456")["login"] == "failure")
            #expect(gateway.asked.isEmpty)
            #expect(try fixture.relay.count("SELECT count(*) FROM sms_usage") == 0)
        }
    }
}
