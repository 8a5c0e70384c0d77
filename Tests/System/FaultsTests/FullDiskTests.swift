import JSON
import TestSupport
import Testing
import World

/// A full disk: the request is refused, nothing partial is stored, and the relay continues by itself afterwards.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct FullDiskTests {
    @Test func fullDiskAnswers503() async throws {
        let fixture = try await Fixture.start()
        let (token, phone) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        try await fixture.relay.limit("fsize", to: "0")

        let refused = try await fixture.shop.send("POST", "/register", ["username": "otto"], key: "r")
        #expect(refused.status == 503 && refused["code"] == "unavailable", "\(refused)")
        #expect((refused.retryAfter ?? 0) > 0)
        let unanswered = try await phone.approve(login)
        #expect(unanswered.status == 503, "\(unanswered)")
        // Requests that write nothing still work.
        #expect(try await fixture.auth(login.challenge)["login"] == "wait")
        // With the second the first has been taken note of.
        try await fixture.relay.logged("event=store.unavailable route=heartbeat", number: 2)
        let ready = try await fixture.anyone.send("GET", "/ready")
        #expect(ready.status == 503)
        #expect(ready.json["dependencies"]?.object?["store"]?.string == "missing", "\(ready)")
        #expect(try await fixture.anyone.send("GET", "/health").status == 200)

        try await fixture.relay.limit("fsize", to: "unlimited")
        let registered = try await fixture.shop.send("POST", "/register", ["username": "otto"], key: "r")
        #expect(registered.status == 201, "\(registered)")
        try await fixture.finish(login, by: phone)
        try await fixture.relay.logged("event=relay.recovered")
        #expect(try await fixture.anyone.send("GET", "/ready").status == 200)
        // Logged once, however many transactions wrote nothing in between.
        for event in ["store.failing", "store.recovered"] {
            #expect(fixture.relay.log.split(separator: "\n").count { $0.contains("event=\(event) ") } == 1, "\(event)")
        }
        for table in ["user", "activation"] {
            #expect(try Ledger.read(fixture.relay) { try $0.number("SELECT count(*) FROM \(table)") } == 2)
        }
    }
}
