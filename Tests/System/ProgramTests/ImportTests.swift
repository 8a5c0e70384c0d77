import Bytes
import Crypto
import Domain
import JSON
import TestSupport
import Testing

@testable import Daemon

@Suite("twoefay import", .timeLimit(.minutes(15)), .mayBlock) struct ImportTests {
    /// The secret of RFC 4226, in hexadecimal.
    private static let seed = "3132333435363738393031323334353637383930"

    private struct Shop {
        let installed: Installed
        let database: String

        /// Creates a website with these users.
        init(_ users: [String]) async throws {
            installed = try await Installed()
            database = installed.directory("relay/twoefay.db")
            for name in ["shop", "bank"] {
                let added = try await BuiltProgram.twoefay(
                    "--config", installed.settings, "website", "add", name, "--out", installed.directory.path)
                try #require(added.status == 0, "\(added.errors)")
            }
            for (number, user) in users.enumerated() {
                let id = "x'\(Hex.encode(Array(repeating: 0, count: 15) + [UInt8(number + 1)]))'"
                _ = try await sql(
                    """
                    INSERT INTO user (id, token, website_id, username, state, created_at, operation)
                    SELECT \(id), \(id), w.id, '\(user)', 'active', '2026-11-22 00:00:00.000', \(id)
                    FROM website w WHERE w.name = 'shop'
                    """)
            }
            try Fixture.execute("UPDATE user SET state = 'active'", in: installed)
        }

        func sql(_ text: String) async throws -> [String] {
            let done = try await Child.run("sqlite3", [database, text])
            try #require(done.status == 0, "\(done.errors)")
            return done.output.split(separator: "\n").map(String.init)
        }

        func file(_ name: String, _ text: String) throws -> String {
            let path = installed.directory(name)
            try TextFile.write(text, to: path)
            return path
        }

        func run(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(
                try BuiltProgram.twoefay.path,
                ["--config", installed.settings, "import", "--website", "shop", "--json"] + arguments)
        }

        /// Returns the code of a user's factor at a counter, computed from the store.
        func code(of user: String, _ kind: Factor, at counter: UInt64) async throws -> String {
            let rows = try await sql(
                """
                SELECT hex(f.secret), hex(w.id), hex(u.id), hex(f.id), f.algorithm, f.digits, f.sealed_by
                FROM factor f JOIN user u ON u.id = f.user_id JOIN website w ON w.id = u.website_id
                WHERE u.username = '\(user)' AND f.kind = '\(kind.rawValue)' AND f.state = 'active'
                """)
            let row = try #require(rows.first).split(separator: "|").map { $0.lowercased() }
            func id<Thing>(_ column: Int) throws -> Identifier<Thing> {
                try #require(Hex.decode(row[column]).flatMap { Identifier<Thing>($0) })
            }
            let keys = try MasterKey(file: try TextFile.bytes(installed.directory("relay/master.key")))
            let sealed = try #require(Hex.decode(row[0]))
            #expect(row[6] == keys.current.id)
            let secret = try keys.sealer().open(
                sealed,
                associated: FactorSeal.associated(website: try id(1), user: try id(2), kind: kind, row: try id(3)))
            return OTP.code(
                secret: Secret(secret), counter: counter, algorithm: try #require(OTPAlgorithm(rawValue: row[4])),
                digits: try #require(Int(row[5])))
        }
    }

    /// The expected codes are from RFC 4226, D and RFC 6238, B.
    @Test func csvImportAssignsTokens() async throws {
        let shop = try await Shop(["ana", "ben"])
        let table = try shop.file(
            "tokens.csv",
            """
            username,kind,secret,digits,counter,algorithm
            ana,hotp,hex:\(Self.seed),6,3,
            ben,totp,base32:GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ,8,,sha1
            """)
        let rehearsal = try await shop.run(table, "--dry-run")
        #expect(try rehearsal.json["added"]?.integer == 2)
        #expect(try await shop.sql("SELECT count(*) FROM factor") == ["0"])
        let done = try await shop.run(table)
        #expect(try done.json["added"]?.integer == 2, "\(done.errors)")
        #expect(try await shop.code(of: "ana", .hotp, at: 0) == "755224")
        #expect(try await shop.code(of: "ana", .hotp, at: 9) == "520489")
        #expect(try await shop.code(of: "ben", .totp, at: 1) == "94287082")
        #expect(
            try await shop.sql("SELECT kind, counter, period, state FROM factor ORDER BY kind")
                == ["hotp|3||active", "totp|0|30|active"])
        #expect(
            try await shop.sql("SELECT outcome FROM audit WHERE event = 'factor.imported' ORDER BY outcome")
                == ["hotp", "totp"])
        #expect(!(try await shop.sql("SELECT quote(secret) FROM factor").joined().lowercased().contains(Self.seed)))
        // Again: a user who has a token keeps it.
        #expect(try await shop.run(table).json["kept"]?.integer == 2)
    }

    /// The token 987654321 of figure 6 in RFC 6030, under a pre-shared key.
    @Test func pskcImportAssignsTokensBySerial() async throws {
        let shop = try await Shop(["ana"])
        let package = try shop.file("tokens.xml", PSKCFigures.figure6)
        let key = try shop.file("transport.key", "12345678901234567890123456789012\n")
        let map = try shop.file("owners.csv", "serial,username\n987654321,ana\n")
        let locked = try await shop.run(package, "--map", map)
        #expect(locked.status == 1)
        #expect(try locked.json["error"]?.object?["next"]?.string?.contains("Pre-shared-key) with --key-file") == true)
        let nobody = try await shop.run(package, "--key-file", key)
        #expect(nobody.status == 1 && nobody.errors.contains("name its user in a --map"))
        let done = try await shop.run(package, "--key-file", key, "--map", map)
        #expect(try done.json["added"]?.integer == 1, "\(done.errors)")
        // RFC 4226, D, with eight digits: the last digits of the numbers there.
        #expect(try await shop.code(of: "ana", .hotp, at: 0) == "84755224")
        #expect(try await shop.code(of: "ana", .hotp, at: 1) == "94287082")
    }

    @Test func importIsAllOrNothing() async throws {
        let shop = try await Shop(["ana"])
        let table = try shop.file(
            "tokens.csv", "username,kind,secret\nana,hotp,hex:\(Self.seed)\nzoe,hotp,hex:\(Self.seed)\n")
        let unknown = try await shop.run(table)
        #expect(unknown.status == 3 && unknown.errors.contains("zoe"))
        for (text, part) in [
            ("username,kind,secret\nana,hotp,hex:31323334\n", ":2: this token has a secret of 4 bytes"),
            (
                "username,kind,secret\nana,hotp,hex:\(Self.seed)\nana,hotp,hex:\(Self.seed)\n",
                ":3: this token is the second"
            ),
            ("username,kind,secret\nana,hotp,hex:\(Self.seed)\nana,x,hex:31\n", ":3: kind: must be"),
        ] {
            let bad = try await shop.run(try shop.file("bad.csv", text))
            #expect(bad.status == 1 && bad.errors.contains(part), "\(bad.errors)")
        }
        #expect(try await shop.sql("SELECT count(*) FROM factor") == ["0"])
        let skipped = try await shop.run(table, "--skip-unknown")
        #expect(try skipped.json["added"]?.integer == 1)
        #expect(try skipped.json["unknown"]?.array?.compactMap(\.string) == ["zoe"])
    }

    /// Another secret replaces the old one. The same secret does not make used codes valid again.
    @Test func importReplacesTokensOnlyOnRequest() async throws {
        let shop = try await Shop(["ana"])
        let table = try shop.file("tokens.csv", "username,kind,secret,counter\nana,hotp,hex:\(Self.seed),5\n")
        #expect(try await shop.run(table).status == 0)
        let used = "2026-11-22 00:00:00.000"
        try Fixture.execute("UPDATE factor SET counter = 9, last_code_at = '\(used)'", in: shop.installed)
        #expect(try await shop.run(table, "--replace").json["replaced"]?.integer == 1)
        #expect(try await shop.sql("SELECT counter, last_code_at FROM factor") == ["9|\(used)"])
        let other = try shop.file("other.csv", "username,kind,secret\nana,hotp,hex:\(Self.seed)01\n")
        #expect(try await shop.run(other).json["kept"]?.integer == 1)
        #expect(try await shop.sql("SELECT counter FROM factor") == ["9"])
        #expect(try await shop.run(other, "--replace").json["replaced"]?.integer == 1)
        // No code of the new token was right yet.
        #expect(try await shop.sql("SELECT counter, last_code_at IS NULL FROM factor") == ["0|1"])
        #expect(try await shop.code(of: "ana", .hotp, at: 0) != "755224")
    }

    @Test func invalidImportOptionsAreRefused() async throws {
        let shop = try await Shop(["ana"])
        let table = try shop.file("tokens.csv", "username,kind,secret\nana,hotp,hex:\(Self.seed)\n")
        let key = try shop.file("k", "xyz")
        #expect(try await shop.run(table, "--format", "xml").status == 2)
        #expect(try await shop.run(table, "--key-file", key, "--password-file", key).status == 2)
        #expect(try await shop.run(table, "--key-file", key).errors.contains("must hold a key of 16, 24 or 32 bytes"))
        #expect(try await shop.run(table, "--password-file", try shop.file("p", "\n")).errors.contains("is empty"))
        #expect(try await shop.run(shop.installed.directory("none")).status == 1)
        #expect(try await shop.run(table, "--format", "pskc").errors.contains("not valid XML"))
        _ = try await Child.run("chmod", ["644", table, key])
        #expect(try await shop.run(table, "--key-file", key).errors.contains("can be read by others"))
        let open = try await shop.run(table)
        #expect(try open.json["remarks"]?.array?.first?.string?.contains("can be read by others") == true)
        let nowhere = try await BuiltProgram.twoefay("--config", shop.installed.settings, "import", table)
        #expect(nowhere.status == 2 && nowhere.errors.contains("--website is missing"))
    }
}
