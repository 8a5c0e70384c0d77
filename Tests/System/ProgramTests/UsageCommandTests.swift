import Bytes
import JSON
import TestSupport
import Testing
import World

/// `twoefay website usage`, and the limits in `website show`, `website edit` and `status`.
@Suite("twoefay website usage", .timeLimit(.minutes(15)), .mayBlock) struct UsageCommandTests {
    private struct Shop {
        let installed: Installed

        /// - Parameter prices: whether the settings have prices.
        init(prices: Bool = false) async throws {
            installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
            if prices {
                let text = try TextFile.read(installed.settings)
                    .replacing("# login: 0.001", with: "login: 0.01").replacing("# user: 0.05", with: "user: 0.5")
                try TextFile.write(Array(text.utf8), to: installed.settings)
            }
            let added = try await BuiltProgram.twoefay(
                "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path,
                "--limit-logins-day", "100")
            try #require(added.status == 0, "\(added.errors)")
        }

        /// Writes a row of the counts, as a relay does.
        func use(_ day: String, logins: Int, users: Int) throws {
            try Fixture.execute(
                """
                INSERT INTO website_usage SELECT '\(day)', id, id, \(logins), \(logins), 3, \(users) FROM website
                WHERE name = 'shop'
                """, in: installed)
        }

        func run(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(try BuiltProgram.twoefay.path, ["--config", installed.settings] + arguments)
        }
    }

    @Test func usageIsShownByMonthWithItsCost() async throws {
        let shop = try await Shop(prices: true)
        let none = try await shop.run("website", "usage")
        #expect(none.status == 0 && none.output.contains("No relay has counted anything yet."))
        try shop.use("2026-10-31", logins: 5, users: 8)
        try shop.use("2026-11-01", logins: 40, users: 10)
        try shop.use("2026-11-02", logins: 2, users: 9)

        let csv = try await shop.run("website", "usage", "shop", "--csv")
        #expect(
            csv.output == """
                month,website,logins,pushes,texts,segments,mails,users,cost
                2026-11,shop,42,42,0,0,6,10,5.42
                2026-10,shop,5,5,0,0,3,8,4.05

                """, "\(csv.errors)")
        let json = try await shop.run("website", "usage", "--month", "2026-11", "--json").json
        #expect(
            json["usage"]?.array == [
                [
                    "month": "2026-11", "website": "shop", "logins": 42, "pushes": 42, "texts": 0, "segments": 0,
                    "mails": 6, "users": 10, "text_cost": "0.00", "cost": "5.42",
                ]
            ])
        let table = try await shop.run("website", "usage", "shop")
        #expect(table.output.hasPrefix("MONTH    WEBSITE  LOGINS"), "\(table.output)")
    }

    @Test func statusShowsTheCostsOfTheMonth() async throws {
        let free = try await Shop()
        let shop = try await Shop(prices: true)
        let today = String(SystemTime().now().rfc3339.prefix(10))
        for shop in [free, shop] { try shop.use(today, logins: 40, users: 10) }
        // The relay does not run, so the status is not 0.
        func costs(_ shop: Shop) async throws -> JSONValue? {
            let status = try await shop.run("status", "--json")
            return try JSONReader.read(Array(status.output.utf8)).object?["website_costs"]
        }
        let text = try await shop.run("status").output
        let (priced, unpriced) = (try await costs(shop), try await costs(free))
        // At the end of a month, the counts are those of the last one.
        guard String(SystemTime().now().rfc3339.prefix(7)) == today.prefix(7) else { return }
        #expect(text.contains("Costs of this month (UTC): shop 5.40. For more: twoefay website usage"), "\(text)")
        #expect(priced == ["shop": "5.40"] && unpriced == [:])
    }

    @Test func wrongNamesAndMonthsAreRefused() async throws {
        let shop = try await Shop()
        for month in ["2026", "2026-13", "november", "2026-11-01"] {
            let refused = try await shop.run("website", "usage", "--month", month)
            #expect(refused.status == 2 && refused.errors.contains("a month such as 2026-11"), "\(month)")
        }
        #expect(try await shop.run("website", "usage", "bank").status != 0)
    }

    @Test func statusWarnsAtFourFifthsOfALimit() async throws {
        let shop = try await Shop()
        let today = String(SystemTime().now().rfc3339.prefix(10))
        try shop.use(today, logins: 79, users: 1)
        let calm = try await shop.run("status")
        // The test does not run over midnight, or the counts are those of yesterday.
        #expect(!calm.output.contains("has used"), "\(calm.output)")
        try Fixture.execute("UPDATE website_usage SET logins = 80", in: shop.installed)
        let near = try await shop.run("status")
        // The relay does not run, so the status is not 0.
        let json = try #require(
            try JSONReader.read(Array(try await shop.run("status", "--json").output.utf8)).object)
        let shown = try await shop.run("website", "show", "shop", "--json").json
        guard String(SystemTime().now().rfc3339.prefix(10)) == today else { return }
        #expect(
            near.output.contains("Warning: the website shop has used limit-logins-day 80 of 100."), "\(near.output)")
        #expect(
            json["website_limits"]?.object?["shop"]?.object?["limit-logins-day"] == ["used": 80, "limit": 100])
        #expect(shown["used"]?.object?["limit-logins-day"] == ["used": 80, "limit": 100])
        #expect(shown["policies"]?.object?["limit-logins-day"] == "100")
    }

    /// The audit says who changed which limit, from which value to which.
    @Test func changedLimitIsAudited() async throws {
        let shop = try await Shop()
        let edited = try await shop.run(
            "website", "edit", "shop", "--limit-texts-month", "2000", "--limit-logins-day", "default", "--json")
        #expect(
            try edited.json["changed"]?.object == [
                "limit-logins-day": ["before": "100", "after": "5000000"],
                "limit-texts-month": ["before": "100000", "after": "2000"],
            ], "\(edited.errors)")
        let audit = try await shop.run("audit", "search", "--event", "website.edited", "--json")
        #expect(audit.output.contains("limit-texts-month") && audit.output.contains("2000"), "\(audit.output)")
        let refused = try await shop.run("website", "edit", "shop", "--limit-texts-month", "many")
        #expect(refused.status == 2 && refused.errors.contains("limit-texts-month must be none or"))
    }
}
