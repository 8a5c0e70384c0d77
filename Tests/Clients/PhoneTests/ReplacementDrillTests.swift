import Glibc
import JSON
import Phone
import TestSupport
import Testing

/// All certificates and all three authorities are replaced one after the other, while websites log
/// in and phones answer. No login fails.
///
/// `TWOEFAY_DRILL_WEBSITES` and `TWOEFAY_DRILL_PHONES` make it larger. A login is three processes, of
/// which one for each website runs at a time, so many websites need a login that stays open.
@Suite("Replacement drill", .timeLimit(.minutes(240)), .mayBlock) struct ReplacementDrillTests {
    /// A website with its phones.
    private struct Site {
        let name: String
        var caller: CurlCaller
        let users: [(name: String, owner: Owner)]

        /// Logs every user in, one after the other. Returns what went wrong.
        func logins() async throws -> [String] {
            var faults: [String] = []
            for (user, owner) in users {
                let asked = try await caller.curl("POST", "/login", json: #"{"username":"\#(user)"}"#)
                guard let challenge = asked["challenge"]?.string, let number = asked["number"]?.string else {
                    faults.append("\(name): \(asked)")
                    continue
                }
                let approved = try await owner.phone("approve", "--challenge", challenge, "--number", number)
                let result = try await caller.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
                if result["login"] != "success" { faults.append("\(name): \(approved.errors) \(result)") }
            }
            return faults
        }
    }

    private static func number(_ variable: String, else fallback: Int) -> Int {
        getenv(variable).flatMap { Int(String(cString: $0)) } ?? fallback
    }

    private static func site(_ name: String, phones: Int, at relay: RunningRelay) async throws -> Site {
        let caller = try await relay.website(name, "--lifetime", "600")
        var users: [(String, Owner)] = []
        for index in 0..<phones {
            let user = "user-\(index)"
            let registered = try await caller.curl("POST", "/register", json: #"{"username":"\#(user)"}"#)
            let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
            let owner = try Owner()
            #expect(try await owner.phone("enrol", uri).status == 0)
            users.append((user, owner))
        }
        var trusting = caller
        trusting.authorityPath = relay.directory("root.pem")
        return Site(name: name, caller: trusting, users: users)
    }

    /// Lets every user log in once, at all websites at the same time.
    ///
    /// - Returns: the logins that failed.
    private static func round(_ sites: [Site]) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            for site in sites { group.addTask { try await site.logins() } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test func nothingIsLostWhileEverythingIsReplaced() async throws {
        let websites = Self.number("TWOEFAY_DRILL_WEBSITES", else: 2)
        let phones = max(1, Self.number("TWOEFAY_DRILL_PHONES", else: 2) / websites)
        let relay = try await RunningRelay.start()
        try TextFile.write(try TextFile.bytes(relay.file("ca.pem")), to: relay.directory("root.pem"))
        var sites: [Site] = []
        for index in 0..<websites {
            sites.append(try await Self.site("shop-\(index)", phones: phones, at: relay))
        }
        let reloads = ReplaceServerTests.Reloads(relay)
        /// Logs everybody in during the change, and again after the reload.
        func step(_ change: () async throws -> Void) async throws {
            let present = sites
            async let during = Self.round(present)
            try await change()
            try await reloads.next()
            let faults = try await during
            #expect(faults.isEmpty, "\(faults)")
            let later = try await Self.round(sites)
            #expect(later.isEmpty, "\(later)")
        }

        try await step { try await relay.tool("server", "renew") }
        try await step { try await relay.tool("authority", "replace", "websites") }
        var former: [(website: String, key: String)] = []
        for index in sites.indices {
            let output = try await relay.tool(
                "website", "renew", sites[index].name, "--out", relay.directory.path, "--json")
            let renewed = try #require(try JSONReader.read(Array(output.utf8)).object)
            sites[index].caller.certificatePath = renewed["certificate"]?.string
            sites[index].caller.keyPath = renewed["key"]?.string
            former.append((sites[index].name, try #require(renewed["former"]?.array?.first?.string)))
        }
        try await step {}
        // A former key that was used in the last day may be that of a server which has not moved.
        #expect(try await relay.operate("authority", "finish", "websites").status == 4)
        for (name, key) in former { try await relay.tool("website", "revoke-key", name, key, "--yes") }
        // The last uses are in the store within seconds.
        while try await relay.operate("authority", "finish", "websites").status != 0 {}
        try await step {}

        try await step { try await relay.tool("authority", "replace", "phones") }
        for site in sites {
            for user in site.users { #expect(try await user.owner.phone("change", "--renew").status == 0) }
        }
        #expect(try await relay.operate("authority", "finish", "phones").status == 4)
        try await step { try await relay.tool("authority", "finish", "phones", "--yes") }

        try await step {
            try await relay.tool("server", "pins")
            try relay.change { try $0.set("tls.pins", to: "pins.jwt") }
        }
        try await step { try await relay.tool("server", "switch") }
        try await relay.logged("event=pins.taken", number: websites * phones)
        try TextFile.write(try TextFile.bytes(relay.file("ca.pem")), to: relay.directory("root.pem"))
        try await step { try await relay.tool("server", "finish") }
        for site in sites {
            for user in site.users { #expect(try user.owner.kept().pins.count == 1) }
        }
    }
}
