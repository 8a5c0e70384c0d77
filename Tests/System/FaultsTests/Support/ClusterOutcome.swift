import EventLoop
import JSON
import TestSupport
import Testing

/// Checks of the results of all logins of a cluster.
extension ClusterTraffic {
    private var settings: String { shop.cluster.settings("relay2") }

    /// Returns when no webhook is left to deliver.
    func settled() async throws {
        while try Ledger.read(settings, { try $0.number("SELECT count(*) FROM outbox WHERE kind = 'webhook'") }) > 0 {
            try Task.checkCancellation()
            await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(200)) }
        }
    }

    /// Checks the store: every challenge is known to a client with the same result, and each code was used once.
    func check(codes users: Int) throws {
        let ended = ended
        try Ledger.read(settings) { ledger in
            try ledger.check()
            #expect(try ledger.number("SELECT count(*) FROM challenge") == Int64(ended.count))
            for (decision, isApproved) in [("approve", true), ("deny", false)] {
                let stored = try ledger.texts("SELECT lower(hex(id)) FROM challenge WHERE decision = '\(decision)'")
                #expect(Set(stored) == Set(ended.filter { $0.value == isApproved }.keys))
            }
            #expect(try ledger.number("SELECT count(*) FROM factor WHERE kind = 'hotp'") == Int64(users))
            // A token's factor stores the counter of the next code.
            let counters = "SELECT coalesce(sum(counter), 0) FROM factor WHERE kind = 'hotp'"
            #expect(try ledger.number(counters) == Int64(codes))
            #expect(try ledger.number("SELECT count(*) FROM audit WHERE event = 'webhook.dead'") == 0)
        }
    }

    /// Checks the receiver: every result arrived at least once, always with one id and one body, and so did every
    /// phone.
    func checkWebhooks(users: Int) throws {
        let events = try shop.receiver.events
        #expect(events.allSatisfy { $0.verdicts == ["accepted"] })
        for (id, same) in Dictionary(grouping: events, by: \.id) {
            let about = Set(same.map { "\($0.type ?? "none") \(JSONWriter.text(.object($0.data)))" })
            #expect(about.count == 1, "\(id): \(about)")
        }
        let decided = Dictionary(grouping: events.filter { $0.type == "login.decided" }) { event in
            event.data["challenge"]?.string ?? "none"
        }
        for (challenge, isApproved) in ended {
            let its = decided[challenge] ?? []
            #expect(Set(its.map(\.id)).count == 1, "\(challenge): \(its)")
            let words = Set(its.map { $0.data["login"]?.string ?? "none" })
            #expect(words == [isApproved ? "success" : "failure"], "\(challenge): \(words)")
        }
        #expect(Set(decided.keys) == Set(ended.keys))
        let bound = Dictionary(grouping: events.filter { $0.type == "device.bound" }, by: \.id)
        #expect(bound.count == users)
        print("cluster: \(Set(events.map(\.id)).count) events came in \(events.count) calls, and none was lost")
    }
}
