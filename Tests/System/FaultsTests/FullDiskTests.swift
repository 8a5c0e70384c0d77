import JSON
import TestSupport
import Testing
import World

/// A full disk: the request is refused, nothing partial is stored, and the relay continues by itself afterwards.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct FullDiskTests {
    @Test func fullDiskAnswers503() async throws {
        let scene = try await Fixture.start()
        let (token, phone) = try await scene.enrol("anna")
        let login = try await scene.login(token)
        try await scene.relay.limit("fsize", to: "0")

        let refused = try await scene.shop.send("POST", "/register", ["username": "otto"], key: "r")
        #expect(refused.status == 503 && refused["code"] == "unavailable", "\(refused)")
        #expect((refused.retryAfter ?? 0) > 0)
        let unanswered = try await phone.approve(login)
        #expect(unanswered.status == 503, "\(unanswered)")
        // Requests that write nothing still work.
        #expect(try await scene.auth(login.challenge)["login"] == "wait")
        // With the second the first has been taken note of.
        try await scene.relay.logged("event=store.unavailable route=heartbeat", number: 2)
        let ready = try await scene.anyone.send("GET", "/ready")
        #expect(ready.status == 503)
        #expect(ready.json["dependencies"]?.object?["store"]?.string == "missing", "\(ready)")
        #expect(try await scene.anyone.send("GET", "/health").status == 200)

        try await scene.relay.limit("fsize", to: "unlimited")
        let registered = try await scene.shop.send("POST", "/register", ["username": "otto"], key: "r")
        #expect(registered.status == 201, "\(registered)")
        try await scene.finish(login, by: phone)
        try await scene.relay.logged("event=relay.recovered")
        #expect(try await scene.anyone.send("GET", "/ready").status == 200)
        // Logged once, however many transactions wrote nothing in between.
        for event in ["store.failing", "store.recovered"] {
            #expect(scene.relay.log.split(separator: "\n").count { $0.contains("event=\(event) ") } == 1, "\(event)")
        }
        for table in ["user", "activation"] {
            #expect(try Ledger.read(scene.relay) { try $0.number("SELECT count(*) FROM \(table)") } == 2)
        }
    }
}
