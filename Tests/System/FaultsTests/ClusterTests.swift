import EventLoop
import Glibc
import TestSupport
import Testing
import World

/// Two relays on a cluster of three nodes, with two hundred logins in flight, while parts of the cluster fail.
/// Every website request gets its result, every result reaches the website's receiver, and no code is accepted
/// twice. The test prints how long no client was served, and expects no value for it.
@Suite(
    .serialized, .timeLimit(.minutes(30)), .mayBlock,
    .enabled(if: RunningCluster.isInstalled, "Galera or HAProxy is not installed; run: dev/need test"),
    .enabled(if: TestWebhookServer.isInstalled, "standardwebhooks is not installed; run: dev/need test"),
    .enabled(if: !Sanitizer.isOn, "the other tests run the relay under a sanitizer"))
struct ClusterTests {
    private static let users = 200
    private static let tokens = 8
    /// The number of users with an app in each trial.
    private static let apps = 4

    /// A failure that is caused while logins are in progress, and its name.
    private struct Trial {
        let what: String
        let happen: @Sendable (RunningCluster, ClusterTraffic, NodeLink) async throws -> Void
    }

    private static let trials = [
        Trial(what: "nothing") { _, traffic, _ in try await traffic.more(200) },
        Trial(what: "kill relay1, and bring it back") { cluster, traffic, _ in
            try await cluster.kill("relay1")
            try await traffic.more(150)
            try await cluster.start("relay1")
            try await traffic.more(100)
        },
        Trial(what: "kill node1, and bring it back") { cluster, traffic, _ in
            try await cluster.kill("node1")
            try await traffic.more(150)
            try await cluster.start("node1")
            try await traffic.more(100)
        },
        Trial(what: "freeze node2 and node3 for 10 s or more") { cluster, traffic, _ in
            try await cluster.freeze("node2", "node3")
            async let longEnough: Void = wait(.seconds(10))
            // No relay has its store, so HAProxy uses relays that are only alive.
            while try await cluster.astray() == 0 { try await look() }
            await longEnough
            try await cluster.start("node2", "node3")
            try await traffic.more(150)
            // HAProxy moves the connections when a relay has its store again.
            while try await cluster.astray() > 0 { try await look() }
        },
        Trial(what: "cut relay1 off all nodes for 20 s") { cluster, traffic, link in
            link.cut()
            await wait(.seconds(20))
            link.mend()
            // Half of the clients use this relay, which answers again.
            try await cluster.start("relay1")
            try await traffic.more(150)
        },
    ]

    /// Waits before the next check.
    private static func look() async throws {
        try Task.checkCancellation()
        await wait(.milliseconds(200))
    }

    private static func wait(_ time: Duration) async {
        await Clients.loop.perform { await Clients.loop.sleep(for: time) }
    }

    @Test func everyResultArrivesCorrectlyWhateverDies() async throws {
        let seed =
            getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
        print("cluster: TWOEFAY_SEED=\(seed)")
        let chance = SeededRandomness(seed: seed)
        try await RunningCluster.run { cluster in
            try await migratesAtAllNodesAtOnce(cluster)
            let link = try await NodeLink(to: cluster.nodes)
            try await cluster.lead(relay1: link)
            let shop = try await ClusterShop.open(cluster, clients: 10, chance)
            let traffic = ClusterTraffic(shop, users: Self.users, chance)
            try await runTrials(traffic, link, chance)
            try await traffic.settled()
            try traffic.check(codes: Self.tokens)
            try traffic.checkWebhooks(users: Self.users)
            try await cluster.checkNodes()
        }
    }

    // MARK: Trials

    private func runTrials(_ traffic: ClusterTraffic, _ link: NodeLink, _ chance: SeededRandomness) async throws {
        let (shop, cluster) = (traffic.shop, traffic.shop.cluster)
        let people = try await traffic.enrol()
        let codes = try await CodeUser.shown(1000)
        let probe = ClusterProbe()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (name, client, phone) in people {
                group.addTask { try await traffic.live(name, at: client, with: phone) }
            }
            for number in 0..<Self.tokens {
                let client = shop.clients[number % shop.clients.count]
                let user = try await CodeUser.withToken("token-\(number)", of: shop, at: client)
                group.addTask { try await traffic.type(codes, of: user) }
            }
            let places = [("proxy", cluster.proxy)] + zip(["relay1", "relay2"], cluster.relays)
            for (place, port) in places + [places[0]] {
                let roamer = try shop.client(chance)
                group.addTask { try await probe.ask(place, at: port, as: roamer) { !traffic.isOver } }
            }
            group.addTask {
                for (number, trial) in Self.trials.enumerated() {
                    try await runTrial(trial, number, traffic, link, probe)
                }
                traffic.end()
            }
            try await group.waitForAll()
        }
    }

    private func runTrial(
        _ trial: Trial, _ number: Int, _ traffic: ClusterTraffic, _ link: NodeLink, _ probe: ClusterProbe
    ) async throws {
        let clients = traffic.shop.clients
        let apps = try await (0..<Self.apps).asyncMap { app in
            try await CodeUser.withApp("app-\(number)-\(app)", of: traffic.shop, at: clients[app % clients.count])
        }
        let (start, before) = (SystemTime().instant(), traffic.ended.count)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await trial.happen(traffic.shop.cluster, traffic, link) }
            for (user, secret) in apps { group.addTask { try await traffic.type(by: secret, of: user) } }
            try await group.waitForAll()
        }
        let end = SystemTime().instant()
        let gaps = ["proxy", "relay1", "relay2"].map { place in
            let gap = probe.gap(at: place, from: start, to: end)
            return "\(place) \(Self.seconds(gap.all)) (one caller \(Self.seconds(gap.one)))"
        }
        print(
            "cluster: \(trial.what): without service at \(gaps.joined(separator: ", ")); "
                + "\(traffic.ended.count - before) logins in \(Self.seconds(end - start))")
    }

    private static func seconds(_ time: Duration) -> String {
        "\(time.wholeMilliseconds / 1000).\(time.wholeMilliseconds % 1000 / 100) s"
    }

    // MARK: Migration

    /// Runs three programs at once, each at a separate node.
    private func migratesAtAllNodesAtOnce(_ cluster: RunningCluster) async throws {
        try await cluster.sql("node1", "CREATE DATABASE fresh; GRANT ALL ON fresh.* TO twoefay@'127.0.0.1'")
        let text = try TextFile.read(cluster.settings("relay1"))
        let names = (1...3).map { "node\($0)" }
        for (name, port) in zip(names, cluster.nodes) {
            var own = text
            try own.set("storage", to: cluster.storage([port], database: "fresh"))
            try TextFile.write(own, to: cluster.settings(name))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for name in names { group.addTask { try await cluster.tool(["migrate"], as: name) } }
            try await group.waitForAll()
        }
        // The tables must equal those of `twoefay init`, which ran alone.
        for name in names {
            let columns = try await ["fresh", "twoefay"].asyncMap { database in
                try await cluster.sql(
                    name,
                    """
                    SELECT table_name, column_name, column_type, is_nullable, column_key FROM information_schema.columns
                    WHERE table_schema = '\(database)' ORDER BY 1, 2
                    """)
            }
            #expect(columns[0] == columns[1] && columns[0].contains("challenge"), "\(name)")
        }
    }
}

extension Collection {
    /// Maps the elements one after the other.
    fileprivate func asyncMap<Value>(_ change: (Element) async throws -> Value) async throws -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await change(element)) }
        return values
    }
}
