import JSON
import TestSupport
import Testing
import World

/// Imported tokens: their codes, as oathtool computes them, log their users in.
@Suite("An imported token", .timeLimit(.minutes(15)), .mayBlock) struct ImportedTokenTests {
    /// The secret of RFC 4226, appendix D.
    private static let secret = "3132333435363738393031323334353637383930"
    private static let longSecret = String(repeating: "0123456789abcdef", count: 4)

    /// Returns the code that oathtool shows with these arguments.
    private func shown(_ arguments: String...) async throws -> String {
        let shown = try await Child.run("oathtool", arguments)
        #expect(shown.status == 0, "\(shown.errors)")
        return String(shown.output.prefix { $0 != "\n" })
    }

    private func pressed(_ count: Int, digits: Int = 6) async throws -> String {
        try await shown("--hotp", "--digits=\(digits)", "--counter=\(count)", Self.secret)
    }

    /// Runs a test with a relay whose website has these users, and with a directory for files.
    private func run(
        _ kind: StoreKind, _ users: [String], _ test: (Fixture, APIClient, TemporaryDirectory) async throws -> Void
    ) async throws {
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { fixture in
            for secret in [Self.secret, Self.longSecret, "12345678901234567890123456789012"] { fixture.record(secret) }
            let shop = try await fixture.website("shop")
            for user in users { try await shop.register(user, with: [:]) }
            try await test(fixture, shop, files)
        }
    }

    private func logsIn(_ shop: APIClient, _ user: String, _ factor: String, _ code: String) async throws {
        let login = try await CodeLogin(shop, user)
        #expect(login.asked["login"] == "unverified" && login.factor == factor)
        try await login.succeeds(by: factor, worth: "substantial", code)
    }

    /// Expects that a code is refused. It must be the last code of the user, because a further one would have to
    /// wait.
    private func isRefused(_ shop: APIClient, _ user: String, _ code: String) async throws {
        let handedIn = try await CodeLogin(shop, user).handIn(code)
        #expect(handedIn.status == 200 && handedIn["login"] == "failure", "\(handedIn)")
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func tokenFromAKeyContainerLogsIn(_ kind: StoreKind) async throws {
        let packages: [(user: String, package: String, unlock: [String])] = [
            ("ana.plain", PSKCFigures.figure3, []), ("ben.asks-a-pin", PSKCFigures.figure5, []),
            ("cyd.shared-key", PSKCFigures.figure6, ["--key-file", "12345678901234567890123456789012"]),
            ("dan.password", PSKCFigures.figure7, ["--password-file", "qwerty"]),
        ]
        let timed = PSKCFigures.figure3.replacing("pskc:hotp", with: "pskc:totp").replacing(
            "Counter>", with: "TimeInterval>"
        ).replacing(">0</PlainValue>", with: ">60</PlainValue>")
        try await run(kind, packages.map(\.user) + ["eve.timed", "fay.late"]) { fixture, shop, files in
            func load(_ package: String, for user: String, _ unlock: [String] = []) async throws -> Child.Ended {
                try TextFile.write(package, to: files("tokens.xml"))
                try TextFile.write("serial,username\n987654321,\(user)\n654321,\(user)\n", to: files("owners.csv"))
                var arguments = [
                    "--config", fixture.relay.settings, "import", files("tokens.xml"), "--website", "shop",
                ]
                arguments += ["--map", files("owners.csv")]
                if let option = unlock.first, let secret = unlock.last {
                    try TextFile.write(secret + "\n", to: files("unlock"))
                    arguments += [option, files("unlock")]
                }
                return try await Child.run(try BuiltProgram.twoefay.path, arguments)
            }
            for (user, package, unlock) in packages {
                let loaded = try await load(package, for: user, unlock)
                #expect(loaded.status == 0, "\(loaded.errors)")
                // Figures with eight digits, all with the secret of RFC 4226.
                try await logsIn(shop, user, "hotp", "84755224")
                try await logsIn(shop, user, "hotp", try await pressed(3, digits: 8))
                try await isRefused(shop, user, "84755224")
            }
            #expect(timed.contains("pskc:totp") && timed.contains("<TimeInterval>") && timed.contains(">60<"))
            let loaded = try await load(timed, for: "eve.timed")
            #expect(loaded.status == 0, "\(loaded.errors)")
            let code = try await shown("--totp", "--digits=8", "--time-step-size=60s", Self.secret)
            try await logsIn(shop, "eve.timed", "totp", code)
            try await isRefused(shop, "eve.timed", code)
            // A token that is not valid or cannot be read is not imported, and its code is refused.
            for package in [PSKCFigures.figure2, PSKCFigures.figure4, PSKCFigures.figure8, PSKCFigures.figure10] {
                #expect(try await load(package, for: "fay.late").status == 1)
            }
            let login = try await CodeLogin(shop, "fay.late")
            let result = try await login.result()
            #expect(result["login"] == "failure" && result["reason"] == "undeliverable", "\(result)")
            #expect(try await login.handIn("84755224").status == 409)
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func tokenFromACSVFileLogsIn(_ kind: StoreKind) async throws {
        try await run(kind, ["ana.pressed", "ben.timed", "cyd.old-clock"]) { fixture, shop, files in
            try TextFile.write(
                """
                username,kind,secret,algorithm,digits,period,counter
                ana.pressed,hotp,base32:GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ,,6,,3
                ben.timed,totp,hex:\(Self.longSecret),sha256,8,60,
                cyd.old-clock,totp,hex:\(Self.secret),,6,,

                """, to: files("tokens.csv"))
            try await fixture.relay.tool("import", files("tokens.csv"), "--website", "shop")
            // The counter begins at the fourth code of RFC 4226.
            try await logsIn(shop, "ana.pressed", "hotp", "969429")
            try await isRefused(shop, "ana.pressed", "359152")
            let code = try await shown("--totp=sha256", "--digits=8", "--time-step-size=60s", Self.longSecret)
            try await logsIn(shop, "ben.timed", "totp", code)
            try await isRefused(shop, "ben.timed", code)
            // A clock that is five minutes late is outside the window.
            let late = Timestamp(seconds: SystemTime().now().seconds - 300).rfc3339.prefix(19)
            try await isRefused(shop, "cyd.old-clock", try await shown("--totp", "--now=\(late)Z", Self.secret))
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func tokenRegisteredByTheWebsiteLogsIn(_ kind: StoreKind) async throws
    {
        try await run(kind, ["ana.pocket", "ben.far"]) { fixture, shop, _ in
            for user in ["ana.pocket", "ben.far"] {
                let added = try await shop.curl("POST", "/user/\(user)/hotp", ["secret": .string("hex:\(Self.secret)")])
                #expect(added.status == 201, "\(added)")
            }
            // Pressed nine times without a login, and then once beyond the window.
            try await logsIn(shop, "ana.pocket", "hotp", try await pressed(9))
            let far = [try await pressed(520), try await pressed(521)]
            let lost = try await CodeLogin(shop, "ben.far").handIn(far[0])
            #expect(lost.status == 200 && lost["login"] == "failure", "\(lost)")
            // Two consecutive codes resynchronise it. Codes in reverse order, or with a gap, do not.
            let path = "/user/ana.pocket/hotp/resync"
            func resync(_ codes: [String]) async throws -> CurlCaller.Answer {
                for code in codes { fixture.record(code) }
                return try await shop.curl("POST", path, ["otps": .array(codes.map { .string($0) })])
            }
            let found = try await resync(far)
            #expect(found.text == #"{"resynced":true}"#, "\(found)")
            try await logsIn(shop, "ana.pocket", "hotp", try await pressed(522))
            // Neither code is valid for a login, nor for another resynchronisation.
            #expect(try await resync(far).text == #"{"resynced":false}"#)
            let login = try await CodeLogin(shop, "ana.pocket")
            #expect(try await login.handIn(far[1]).status == 429)
            try fixture.relay.execute("UPDATE user SET code_failed_at = '2026-01-01 00:00:00.000'")
            #expect(try await login.handIn(far[1])["login"] == "failure")
        }
    }
}
