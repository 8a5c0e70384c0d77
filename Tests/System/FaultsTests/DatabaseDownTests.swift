import JSON
import TestSupport
import Testing

/// A database server that is killed or hangs: requests are refused in time, memory does not grow,
/// and the relay continues by itself after the recovery.
@Suite(.serialized, .timeLimit(.minutes(15)), .mayBlock) struct DatabaseDownTests {
    enum Harm: String, CaseIterable, CustomTestStringConvertible {
        case killed, hung

        var testDescription: String { rawValue }

        func begin(_ server: MariaDBServer) {
            switch self {
            case .killed: server.kill()
            case .hung: server.pause()
            }
        }

        func end(_ server: MariaDBServer) throws {
            switch self {
            case .killed: try server.start()
            case .hung: server.resume()
            }
        }
    }

    /// A separate server, because other suites stop theirs, too.
    private static let server = Result { try MariaDBServer() }

    private func fixture() async throws -> (Fixture, MariaDBServer) {
        let server = try Self.server.get()
        let fixture = try await Fixture.start { try server.store(for: &$0) }
        return (fixture, server)
    }

    @Test(arguments: Harm.allCases) func databaseOutageIsAnsweredInTimeAndRecovers(_ harm: Harm) async throws {
        let (fixture, server) = try await fixture()
        let (token, phone) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        harm.begin(server)

        async let writing = fixture.shop.send("POST", "/login", ["token": .string(token)])
        async let reading = fixture.shop.send("GET", "/user/anna")
        async let asking = fixture.anyone.send("GET", "/ready")
        #expect(try await fixture.anyone.send("GET", "/health").status == 200)
        for refused in [try await writing, try await reading] {
            #expect(refused.status == 503 && refused["code"] == "unavailable", "\(refused)")
            #expect((refused.retryAfter ?? 0) > 0)
        }
        let ready = try await asking
        #expect(ready.status == 503)
        #expect(ready.json["dependencies"]?.object?["store"]?.string == "missing", "\(ready)")

        // As many requests at a time as four connections carry. The first wave allocates memory,
        // and the next ones must add nothing.
        var lines: [ClientConnection] = []
        for _ in 0..<4 { lines.append(try await fixture.shop.line()) }
        try await wave(400, over: lines)
        // Under a sanitizer, freed memory stays resident so that its use is detected.
        if !Sanitizer.isOn {
            let before = try fixture.relay.residentBytes
            for _ in 0..<3 { try await wave(400, over: lines) }
            let after = try fixture.relay.residentBytes
            #expect(after - before < 2 << 20, "\(before) became \(after) bytes")
        }

        // Its own beat waits for a connection in another line than what was refused above, and may
        // do so until the server is back: what never failed does not recover either.
        try await fixture.relay.logged("event=store.unavailable route=heartbeat")
        try harm.end(server)
        try await fixture.relay.logged("event=relay.recovered")
        var result = try await fixture.auth(login.challenge)
        // The lane for reads may still be in a pause.
        while result.status == 503 { result = try await fixture.auth(login.challenge) }
        #expect(result["login"] == "wait", "\(result)")
        #expect(try await fixture.anyone.send("GET", "/ready").status == 200)
        try await fixture.finish(login, by: phone)
    }

    private func wave(_ count: Int, over lines: [ClientConnection]) async throws {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<count {
                group.addTask { try await lines[number % lines.count].send("GET", "/user/user-\(number)").get().status }
            }
            for try await status in group { #expect(status == 503) }
        }
    }

    @Test(arguments: Harm.allCases) func startWithoutDatabaseReportsIt(_ harm: Harm) async throws {
        let (fixture, server) = try await fixture()
        #expect(await fixture.relay.stop().status == 0)
        harm.begin(server)
        let problem = await #expect(throws: Child.Problem.self) { try await fixture.relay.restart() }
        try harm.end(server)
        let text = problem?.description ?? ""
        #expect(text.contains("ended with 5"), "\(text)")
        #expect(text.contains("the store cannot be used: mariadb://"), "\(text)")
        #expect(text.contains("If it is down, start it"), "\(text)")
        try await fixture.relay.restart()
        #expect(try await fixture.anyone.send("GET", "/ready").status == 200)
    }
}
