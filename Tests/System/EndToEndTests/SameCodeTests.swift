import HTTP
import JSON
import Synchronization
import TestSupport
import Testing

/// Codes that arrive many times at once, over real connections: a right one succeeds once, and a wrong one counts
/// once.
@Suite("A code that arrives many times at once", .timeLimit(.minutes(15)), .mayBlock) struct SameCodeTests {
    private static let connections = 200

    /// The secret of a token and its first codes (RFC 4226, appendix D).
    private static let secret = "hex:3132333435363738393031323334353637383930"
    private static let shown = ["755224", "287082", "359152"]

    private func run(_ kind: StoreKind, _ test: (Fixture, APIClient, TestGateway) async throws -> Void) async throws {
        let gateway = try await TestGateway.taking()
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try Outgoing.set(gateways: [Outgoing.gateway("one", gateway.url, files)], files, in: &text)
        } _: { fixture in
            let shop = try await fixture.website("shop", ["--guesses", "8"])
            try await shop.register("ana.token", with: ["phone": "+4915112345678"])
            let added = try await shop.curl("POST", "/user/ana.token/hotp", ["secret": .string(Self.secret)])
            #expect(added.status == 201, "\(added)")
            try await test(fixture, shop, gateway)
        }
    }

    private func body(_ login: CodeLogin, _ code: String) -> JSONObject {
        ["challenge": .string(login.challenge), "otp": .string(code)]
    }

    /// One request has logged the user in, and the others learn that the challenge has ended.
    private func lettingInOnce(
        _ answers: [Response], _ fixture: Fixture, _ login: CodeLogin, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let right = answers.filter { $0.status == 200 && $0["login"] == "success" }
        let late = answers.filter { $0.status == 409 && $0["code"] == "already_decided" }
        #expect(right.count == 1 && late.count == answers.count - 1, sourceLocation: location)
        #expect(try await login.result()["login"] == "success", sourceLocation: location)
        let ends = "SELECT count(*) FROM audit WHERE challenge_id = x'\(login.challenge)' AND event = '"
        #expect(try fixture.relay.count(ends + "challenge.answered'") == 1, sourceLocation: location)
        #expect(try fixture.relay.count(ends + "code.wrong'") == 0, sourceLocation: location)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func sameCodeThirtyTimesInOnePacketIsAcceptedOnce(_ kind: StoreKind)
        async throws
    {
        try await run(kind) { fixture, shop, gateway in
            let middle = try Interposer(to: fixture.relay.port)
            var through = shop
            through.caller.port = middle.port
            let connection = try await Connection(through)
            #expect(try await connection.send("GET", "/user/ana.token").status == 200)
            let pieces = Mutex<[Int]>([])
            middle.set { piece, direction, _ in
                if direction == .toServer { pieces.withLock { $0.append(piece.count) } }
                return piece
            }
            for (factor, sent) in [("hotp", 0), ("sms", 1)] {
                let login = try await CodeLogin(shop, "ana.token", ["factors": [.string(factor)]])
                let code = factor == "sms" ? try await gateway.code(sent) : Self.shown[0]
                fixture.record(code)
                pieces.withLock { $0 = [] }
                let answers = try await connection.sendTogether("POST", "/backup", body(login, code), times: 30)
                // The first piece has all of them; later pieces at most acknowledge the answers.
                let sizes = pieces.withLock { $0 }
                #expect(
                    sizes.first.map { $0 > 30 * 80 } == true && sizes.dropFirst().allSatisfy { $0 < 200 }, "\(sizes)")
                try await lettingInOnce(answers, fixture, login)
            }
        }
    }

    private func fromAll(_ lines: [Connection], _ body: JSONObject) async throws -> [Response] {
        try await withThrowingTaskGroup(of: Response.self) { group in
            for line in lines { group.addTask { try await line.send("POST", "/backup", body) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func sameCodeFrom200ConnectionsIsAcceptedOnce(_ kind: StoreKind)
        async throws
    {
        try await run(kind) { fixture, shop, gateway in
            // One after the other, because the relay gives each handshake ten seconds, and all share two cores.
            var lines: [Connection] = []
            for _ in 0..<Self.connections { lines.append(try await Connection(shop)) }
            for (factor, sent) in [("hotp", 0), ("sms", 1)] {
                let login = try await CodeLogin(shop, "ana.token", ["factors": [.string(factor)]])
                let code = factor == "sms" ? try await gateway.code(sent) : Self.shown[0]
                fixture.record(code)
                try await lettingInOnce(try await fromAll(lines, body(login, code)), fixture, login)
            }
            try await wrongOnes(fixture, shop, lines)
        }
    }

    /// Submits waves of wrong codes. One code of each wave is checked; the third wave locks codes. There were
    /// enough earlier failures that the delay is longer than any wave takes.
    private func wrongOnes(_ fixture: Fixture, _ shop: APIClient, _ lines: [Connection]) async throws {
        let login = try await CodeLogin(shop, "ana.token", ["factors": ["hotp"]])
        try fixture.relay.execute("UPDATE factor SET failures = 5 WHERE kind = 'hotp'")
        try fixture.relay.execute("UPDATE user SET code_failures = 5")
        for wave in 1...3 {
            let answers = try await fromAll(lines, body(login, "000000"))
            let tried = answers.filter { $0.status == 200 }
            let held = answers.filter { $0.status == 429 && $0.fields["retry-after"] != nil }
            let over = answers.filter { $0.status == 409 || $0["code"] == "codes_locked" }
            #expect(tried.count == 1 && tried.allSatisfy { $0["login"] == "failure" }, "\(wave)")
            #expect(held.count + over.count == answers.count - 1 && (wave == 3 || over.isEmpty), "\(wave)")
            let counted = "SELECT count(*) FROM audit WHERE event = 'code.wrong'"
            #expect(try fixture.relay.count(counted) == Int64(wave))
            #expect(try fixture.relay.count("SELECT failures FROM factor WHERE kind = 'hotp'") == Int64(5 + wave))
            #expect(try fixture.relay.count("SELECT failures FROM factor WHERE kind = 'sms'") == 0)
            #expect(try fixture.relay.count("SELECT code_failures FROM user") == Int64(5 + wave))
            try fixture.relay.execute("UPDATE user SET code_failed_at = '2026-01-01 00:00:00.000'")
        }
        #expect(try await login.result()["reason"] == "locked")
        #expect(try fixture.relay.count("SELECT count(*) FROM audit WHERE event = 'codes.locked'") == 1)
        #expect(try await login.handIn(Self.shown[1]).status == 409)
        let next = try await CodeLogin(shop, "ana.token")
        #expect(next.asked["codes"] == "locked")
        #expect(try await next.result()["reason"] == "locked")
        // The user has no phone to approve an unlock. An operator unlocks codes, and the next code was never used.
        #expect(try await shop.curl("POST", "/user/ana.token/unlock").status == 403)
        try await fixture.relay.tool("user", "unlock", "ana.token", "--website", "shop")
        try await CodeLogin(shop, "ana.token").succeeds(by: "hotp", worth: "substantial", Self.shown[1])
    }
}
