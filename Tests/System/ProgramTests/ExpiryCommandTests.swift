import JSON
import TestSupport
import Testing
import World

/// The commands `twoefay user expire` and `user expiring`, on the store of a running relay.
@Suite("twoefay user expire", .timeLimit(.minutes(15)), .mayBlock) struct ExpiryCommandTests {
    private static let far = "2099-12-31"

    @Test(arguments: [StoreKind.file, .mariadb]) func expiredUserCannotLogInUntilTheTimeIsRemoved(
        _ kind: StoreKind
    ) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        let given = ["user", "expire", "ada", "--website", "shop"]
        let day = try await fixture.json("user", "expire", "ada", "--website", "shop", "--at", Self.far)
        // The day is the last one.
        #expect(day["expires_at"] == "2100-01-01T00:00:00.000Z" && day["previous"] == .null)
        #expect(try await fixture.result(try await fixture.login("ada"))["login"] == "wait")

        let never9999 = try await fixture.tool(given + ["--at", "9999-12-31"])
        #expect(never9999.status == 2 && never9999.errors.contains("--never"), "\(never9999.errors)")
        let expired = try await fixture.tool(given + ["--at", "2026-01-01T12:00:00Z"])
        #expect(expired.status == 0 && expired.output.contains("no login succeeds"), "\(expired.errors)")
        let result = try await fixture.result(try await fixture.login("ada"))
        #expect(result["login"] == "failure" && result["reason"] == "user_expired", "\(result)")
        let seen = try await fixture.shop.curl("GET", "/user/ada")
        #expect(seen["state"] == "expired" && seen["expires_at"] == "2026-01-01T12:00:00.000Z")
        let undoing = try await fixture.shop.curl("PATCH", "/user/ada", json: #"{"expires_at":null}"#)
        #expect(undoing["code"] == "forbidden", "\(undoing)")
        let device = try #require(seen["devices"]?.array?.first?.object)
        #expect(device["state"] == "expired" && device["expires_at"] == seen["expires_at"])
        #expect(seen["factors"]?.array?.allSatisfy { $0.object?["state"] == "expired" } == true, "\(seen)")
        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(shown["expires_by"] == "operator")
        #expect(shown["state"] == "expired" && shown["devices"]?.array?.first?.object?["state"] == "expired")
        #expect(try await fixture.json("device", "show", phone.device)["state"] == "expired")
        let text = try await fixture.tool(["user", "show", "ada", "--website", "shop"]).output
        #expect(
            text.contains("Expired at: 2026-01-01T12:00:00.000Z, set by an operator")
                && text.contains("twoefay user expire ada"))

        let never = try await fixture.json("user", "expire", "ada", "--website", "shop", "--never")
        #expect(never["expires_at"] == .null && never["previous"] == "2026-01-01T12:00:00.000Z")
        #expect(try await fixture.result(try await fixture.login("ada"))["login"] == "wait")
        #expect(try fixture.trail("user.expiry", outcome: "operator") == 3)
        #expect(
            try fixture.relay.count("SELECT count(*) FROM AuditTrail WHERE note = 'expires 2026-01-01T12:00:00.000Z'")
                == 1)
        #expect(try await phone.isKnown())
    }

    @Test func usersWhoExpireSoonAreListed() async throws {
        let fixture = try await Fixture(.file)
        let now = SystemTime().now()
        for (name, days) in [("ada", 6), ("bob", 2), ("carl", 8), ("eve", -1), ("mia", 3), ("zoe", -2), ("kim", -3)] {
            _ = try await fixture.registered(name)
            let at = (now + .seconds(days * 86_400)).rfc3339
            _ = try await fixture.json("user", "expire", name, "--website", "shop", "--at", at)
        }
        // These show their lock, so they count as locked alone.
        for name in ["mia", "kim"] { _ = try await fixture.json("user", "lock", name, "--website", "shop") }
        let listed = try await fixture.json("user", "expiring")
        #expect(listed["users"]?.array?.map { $0.object?["user"] } == ["bob", "ada"])
        #expect(listed["count"] == 2)
        let expired = try await fixture.json("user", "expiring", "--expired")
        #expect(expired["users"]?.array?.map { $0.object?["user"] } == ["eve", "zoe"] && expired["count"] == 2)
        #expect(try await fixture.json("status")["expiring_users"] == 2)
        let status = try await fixture.tool(["status"]).output
        #expect(status.contains("Warning: 2 users will expire within seven days"), "\(status)")
    }

    /// A list ends after a thousand users, and says how many more there are.
    @Test func longListSaysHowManyAreMissing() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        #expect(try await fixture.tool(["user", "expiring", "--expired"]).output.contains("No user has expired."))
        try fixture.relay.forge(
            """
            WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1002)
            INSERT INTO user (id, token, website_id, username, state, expires_at, created_at, operation)
            SELECT randomblob(16), randomblob(16), u.website_id, 'user-' || n, 'active', '2026-01-01 00:00:00.000',
            u.created_at, u.operation FROM user u JOIN numbers WHERE u.username = 'ada'
            """)
        let listed = try await fixture.json("user", "expiring", "--expired")
        #expect(listed["users"]?.array?.count == 1000 && listed["count"] == 1002)
        let text = try await fixture.tool(["user", "expiring", "--expired"]).output
        #expect(text.hasSuffix("and 2 more\n"), "\(text.suffix(80))")
    }

    /// An operator sees what somebody else has written into the store, and that it is no relay's.
    @Test(arguments: [StoreKind.file, .mariadb]) func changedRowsAreShownAsNotGenuine(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        let given = ["user", "show", "ada", "--website", "shop"]
        #expect(try await fixture.json("user", "show", "ada", "--website", "shop")["forged"] == false)
        #expect(try await !fixture.tool(given).output.contains("not genuine"))
        try fixture.relay.forge(
            """
            INSERT INTO device_report (device_id, os, reported_at, received_at)
            SELECT id, 'Stranger', created_at, created_at FROM device
            """)
        try fixture.relay.forge("UPDATE user SET expires_at = '2099-01-01 00:00:00.000'")
        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")
        let device = try #require(shown["devices"]?.array?.first?.object)
        #expect(shown["forged"] == true && device["report"] == .null && device["report_forged"] == true)
        let text = try await fixture.tool(given).output
        #expect(text.contains("the row of this user is not genuine") && text.contains(phone.device), "\(text)")
        let single = try await fixture.tool(["device", "show", phone.device]).output
        #expect(single.contains("Its stored report is not genuine") && !single.contains("Stranger"), "\(single)")
    }

    @Test func unsuitableTimeIsRefused() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        let given = ["user", "expire", "ada", "--website", "shop"]
        try await fixture.refused(given, 2, "--at or --never is missing")
        try await fixture.refused(given + ["--at", Self.far, "--never"], 2, "exclude each other")
        for text in ["31.12.2026", "2026-02-30", "2026-12-31T23:00:00+01:00", "1969-12-31T00:00:00Z"] {
            try await fixture.refused(given + ["--at", text], 2, "--at must be a day")
        }
        try await fixture.refused(["user", "expire", "eve", "--website", "shop", "--never"], 3, "has no user eve")
    }

    /// The views for people.
    @Test(arguments: [StoreKind.file, .mariadb]) func viewsShowStatesAndCounts(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        _ = try await fixture.registered("bob")
        _ = try await fixture.json("user", "expire", "ada", "--website", "shop", "--at", Self.far)
        let relay = fixture.relay
        #expect(
            try relay.count(
                """
                SELECT count(*) FROM Phones WHERE website = 'shop' AND username = 'ada' AND device = '\(phone.device)'
                AND platform = 'ios' AND state = 'active' AND login_successes = 0 AND expires_at IS NOT NULL
                AND reported_at IS NULL
                """) == 1)
        #expect(try relay.count("SELECT phones FROM PhonesByState WHERE website = 'shop' AND state = 'active'") == 1)
        #expect(try relay.count("SELECT users FROM UsersByState WHERE website = 'shop' AND state = 'active'") == 2)
        #expect(try relay.count("SELECT with_expiry FROM UsersByState WHERE website = 'shop'") == 1)
    }
}
