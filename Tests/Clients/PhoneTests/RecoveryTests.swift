import JSON
import TestSupport
import Testing

/// `twoefay phone recoveries` and `phone stop-recovery` with a real relay, and the operator's
/// commands.
@Suite(.timeLimit(.minutes(15))) struct RecoveryProgramTests {
    private func tool(_ relay: RunningRelay, _ arguments: [String]) async throws -> Child.Ended {
        try await Child.run(try BuiltProgram.twoefay.path, ["--config", relay.settings] + arguments)
    }

    private func recoveries(_ ended: Child.Ended) throws -> [JSONObject] {
        let object = try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
        return object["recoveries"]?.array?.compactMap(\.object) ?? []
    }

    @Test(arguments: [StoreKind.file, .mariadb], [[], ["--dpop"]])
    func phoneStopsWhatTheOperatorStarted(kind: StoreKind, identity: [String]) async throws {
        // The address has no listener, so the link stays in the outbox.
        let port = try FreePort()
        let relay = try await RunningRelay.start(kind) { text throws in
            try text.set("mail.url", to: "smtp://127.0.0.1:\(port.port)")
            try text.set("mail.from", to: "login@shop.example.com")
        }
        let shop = try await relay.website(
            "shop", "--recovery-url", "https://shop.example.com/recover", "--further-factors", "website")
        let registered = try await shop.curl(
            "POST", "/register", json: #"{"username":"alice","email":"alice@example.com"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let seed = #"{"secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}"#
        #expect(try await shop.curl("POST", "/user/alice/hotp", json: seed).status == 201)
        let owner = try Owner()
        #expect(try await owner.phone("enrol", uri).status == 0)
        func phone(_ arguments: String...) async throws -> Child.Ended {
            try await owner.begin(arguments + identity + ["--keys", owner.keys]).ended()
        }
        #expect(try await phone("recoveries").output.contains("Nothing is about to be replaced."))

        let who = ["alice", "--website", "shop", "--factor", "hotp"]
        let sent = try await tool(relay, ["user", "recover"] + who + ["--json"])
        let started = try #require(try JSONReader.read(Array(sent.output.utf8)).object, "\(sent.errors)")
        #expect(started["sent_to"] == "alice@example.com")
        let id = try #require(started["recovery"]?.string)
        let listed = try recoveries(try await phone("recoveries", "--json"))
        #expect(listed.count == 1 && listed[0]["recovery"]?.string == id, "\(listed)")
        #expect(listed[0]["factor"] == "hotp" && listed[0]["state"] == "sent")
        let table = try await phone("recoveries").output
        #expect(table.contains(id) && table.contains("hotp"), "\(table)")
        // Nobody vouches for a user who has not opened the link.
        let early = try await tool(
            relay, ["user", "approve-recovery"] + who + ["--code", "123456", "--by", "Ben Berg", "--note", "by phone"])
        #expect(early.status == 3 && early.errors.contains("the link must be opened first"), "\(early.errors)")
        let anyone = try await tool(
            relay, ["user", "approve-recovery"] + who + ["--by", "Ben Berg", "--note", "by phone"])
        #expect(anyone.status == 2 && anyone.errors.contains("--code is missing"), "\(anyone.errors)")

        let stopped = try await phone("stop-recovery", id)
        #expect(stopped.status == 0, "\(stopped.errors)")
        #expect(try recoveries(try await phone("recoveries", "--json")).isEmpty)
        #expect(try await phone("stop-recovery", id).status == 0)
        let late = try await tool(relay, ["user", "cancel-recovery"] + who)
        #expect(late.status == 3 && late.errors.contains("has no open recovery of hotp"), "\(late.errors)")
        #expect(
            try relay.count("SELECT count(*) FROM AuditTrail WHERE event = 'recovery.cancelled' AND note = 'phone'")
                == 1)
        for (factor, reason) in [("totp", "has no totp to lose"), ("sms", "must be totp, hotp or push")] {
            let refused = try await tool(
                relay, ["user", "recover", "alice", "--website", "shop", "--factor", factor])
            #expect(refused.status != 0 && refused.errors.contains(reason), "\(refused.errors)")
        }
    }
}
