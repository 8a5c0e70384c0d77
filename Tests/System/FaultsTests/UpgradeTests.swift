import Bytes
import Crypto
import EventLoop
import Glibc
import JSON
import Storage
import Synchronization
import TestSupport
import Testing
import World

/// The rehearsal of an update under load: relays of the version before are replaced one after the other,
/// the tables are brought up to date, and the relays start again. Every login is answered exactly once.
///
/// `TWOEFAY_PREVIOUS` names the directory with the programs of the last package
/// (`dev/rehearse-upgrade`). Without it, today's programs begin on the tables of that package.
@Suite(.serialized, .timeLimit(.minutes(15)), .mayBlock) struct UpgradeTests {
    private static var seed: UInt64 {
        getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
    }

    /// The tables that the last package left; nil if its programs make them.
    private static var tables: Int64? { BuiltProgram.previous == nil ? FormerSchema.last : nil }

    /// The claims of a receipt.
    private static func claims(_ receipt: String) throws -> JSONObject {
        try #require(try JSONReader.read(JWS.parse(receipt).payload).object)
    }

    // MARK: Two relays on a cluster

    @Test(
        .enabled(if: RunningCluster.isInstalled, "Galera or HAProxy is not installed; run: dev/need test"),
        .enabled(if: TestWebhookServer.isInstalled, "standardwebhooks is not installed; run: dev/need test"),
        .enabled(if: !Sanitizer.isOn, "the other tests run the relay under a sanitizer"))
    func relaysOnAClusterAreUpdatedOneAfterTheOther() async throws {
        let seed = Self.seed
        print("upgrade: TWOEFAY_SEED=\(seed), from \(BuiltProgram.previous ?? "the tables of the last package")")
        let chance = SeededRandomness(seed: seed)
        try await RunningCluster.run(by: BuiltProgram.previous) { cluster in
            let database = try await prepare(cluster)
            let shop = try await ClusterShop.open(cluster, clients: 3, chance)
            let traffic = ClusterTraffic(shop, users: 6, chance, hesitation: 0..<50)
            let people = try await traffic.enrol()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (name, client, phone) in people {
                    group.addTask { try await traffic.live(name, at: client, with: phone) }
                }
                group.addTask {
                    try await update(cluster, traffic)
                    traffic.end()
                }
                try await group.waitForAll()
            }
            try await traffic.settled()
            try traffic.check(codes: 0)
            try traffic.checkWebhooks(users: 6)
            try await cluster.checkNodes(database)
            // Each login has one receipt, which is about it and about nothing else.
            #expect(Set(traffic.receipts.keys) == Set(traffic.ended.keys))
            for (challenge, receipt) in traffic.receipts {
                let claims = try Self.claims(receipt)
                #expect(claims["challenge"] == .string(challenge))
                #expect(claims["decision"] == (traffic.ended[challenge] == true ? "approve" : "deny"))
            }
            print("upgrade: \(traffic.ended.count) logins on the cluster")
        }
    }

    /// Returns the name of the database, which has the tables of the last package.
    private func prepare(_ cluster: RunningCluster) async throws -> String {
        guard let tables = Self.tables else {
            try await cluster.change(by: BuiltProgram.previous) { _, _ in }
            return "twoefay"
        }
        try await cluster.sql("node1", "CREATE DATABASE former; GRANT ALL ON former.* TO twoefay@'127.0.0.1'")
        let password = "password_file=\(cluster.path)/keys/db.password"
        let node = try #require(cluster.nodes.first)
        let url = try StorageURL("mariadb://twoefay@127.0.0.1:\(node)/former?\(password)")
        try await blocking { try FormerSchema.create(tables, at: url) }
        try await cluster.change { _, text in
            try text.set("storage", to: cluster.storage(cluster.nodes, database: "former"))
        }
        return "former"
    }

    private func update(_ cluster: RunningCluster, _ traffic: ClusterTraffic) async throws {
        let version = try await schema(cluster)
        #expect(version < SchemaState.known)
        try await traffic.more(12)
        // First the programs, which work with the tables of the version before.
        for relay in ["relay1", "relay2"] {
            let before = try olderTables(relay, cluster)
            try await cluster.stop(relay)
            try await traffic.more(6)
            try await cluster.start(relay)
            try await traffic.more(12)
            #expect(try olderTables(relay, cluster) == before + 1, "\(relay)")
        }
        #expect(try await cluster.tool(["migrate", "--plan"]).contains("schema \(version), and this program knows"))
        #expect(try await schema(cluster) == version)
        // Then the tables, beside both relays, which go on.
        async let migrated = cluster.tool(["migrate"])
        try await traffic.more(12)
        #expect(try await migrated.contains("are brought from schema \(version) to \(SchemaState.known)."))
        #expect(try await schema(cluster) == SchemaState.known)
        try await traffic.more(12)
        // Then the relays once more, so that they use the new tables.
        for relay in ["relay1", "relay2"] {
            let before = try olderTables(relay, cluster)
            try await cluster.stop(relay)
            try await cluster.start(relay)
            try await traffic.more(12)
            #expect(try olderTables(relay, cluster) == before, "\(relay)")
        }
        for relay in ["relay1", "relay2"] {
            let errors = try cluster.log(relay).split(separator: "\n").filter { $0.contains(" level=error ") }
            #expect(errors == [], "\(relay)")
        }
    }

    /// Returns how many starts of a relay have found the tables of the version before.
    private func olderTables(_ relay: String, _ cluster: RunningCluster) throws -> Int {
        try cluster.log(relay).split(separator: "\n").count { $0.contains("event=schema.older ") }
    }

    private func schema(_ cluster: RunningCluster) async throws -> Int64 {
        let plan = try await cluster.tool(["migrate", "--plan", "--json"])
        let read = try JSONReader.read(Array(plan.utf8)).object
        return try #require(read?["schema_version"]?.integer)
    }

    // MARK: One relay on SQLite

    @Test func relayOnSQLiteIsUpdatedInPlace() async throws {
        let fixture = try await Fixture.start(.file, by: BuiltProgram.previous, tables: Self.tables) {
            try $0.set("audit.heads", to: "heads.jsonl")
        }
        let (traffic, relay) = (Traffic(fixture), fixture.relay)
        var people: [(token: String, phone: Phone)] = []
        for user in 0..<4 { people.append(try await fixture.enrol("user-\(user)")) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, person) in people.enumerated() {
                group.addTask { try await traffic.live("user-\(number)", person.token, person.phone) }
            }
            group.addTask {
                await traffic.gate.answers(40)
                try await replace(relay, traffic)
                try await relay.logged("event=schema.older version=\(FormerSchema.last)")
                await traffic.gate.answers(40)
                // Beside the relay, which goes on.
                let done = try await relay.tool("migrate")
                #expect(done.contains("are brought from schema \(FormerSchema.last) to \(SchemaState.known)."))
                await traffic.gate.answers(40)
                try await replace(relay, traffic)
                await traffic.gate.answers(40)
                traffic.end()
            }
            try await group.waitForAll()
        }
        #expect(relay.log.split(separator: "\n").filter { $0.contains(" level=error ") } == [])
        let logins = traffic.logins
        print("upgrade: \(logins.count) logins on SQLite")
        try Ledger.read(relay) { ledger in
            try ledger.check()
            #expect(try ledger.number("SELECT count(*) FROM challenge") == Int64(logins.count))
            let approved = try ledger.texts("SELECT lower(hex(id)) FROM challenge WHERE decision = 'approve'")
            #expect(approved.count == logins.count && Set(approved) == Set(logins))
            #expect(try ledger.number("SELECT max(version) FROM migration") == SchemaState.known)
            #expect(try ledger.number("SELECT count(*) FROM AuditTrail WHERE event = 'schema.migrated'") == 1)
        }
        #expect(try await relay.auditFindings() == [])
    }

    /// Stops the relay as an operator does, and starts the present program.
    private func replace(_ relay: RunningRelay, _ traffic: Traffic) async throws {
        traffic.gate.shut()
        #expect(await relay.stop().status == 0)
        try await relay.restart()
        traffic.gate.open()
    }

    /// Logins over clients that repeat what was not answered.
    private final class Traffic: Sendable {
        let gate = Gate()
        private let fixture: Fixture
        private let state = Mutex<(ended: [String], isOver: Bool)>(([], false))

        init(_ fixture: Fixture) { self.fixture = fixture }

        /// The approved challenges.
        var logins: [String] { state.withLock { $0.ended } }
        func end() { state.withLock { $0.isOver = true } }

        func live(_ name: String, _ token: String, _ phone: Phone) async throws {
            var number = 0
            repeat {
                number += 1
                let asked: JSONObject = ["token": .string(token)]
                let login = try Login(
                    try await fixture.shop.insist("POST", "/login", asked, key: "\(name)-\(number)", gate: gate))
                let answer = try await phone.client.insist("POST", "/success", phone.answer(login), gate: gate)
                // 409: an earlier attempt was accepted, and its answer lost.
                #expect(answer.status == 200 || answer["code"] == "already_decided", "\(answer)")
                let challenge: JSONObject = ["challenge": .string(login.challenge)]
                let result = try await fixture.shop.insist("POST", "/auth", challenge, gate: gate)
                #expect(result["login"] == "success", "\(result)")
                state.withLock { $0.ended.append(login.challenge) }
            } while !state.withLock { $0.isOver }
        }
    }
}
