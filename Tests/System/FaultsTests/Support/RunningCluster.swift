import CLinux
import Glibc
import JSON
import TestSupport
import Testing

/// A cluster of `dev/cluster`: three nodes of a database, two relays and a HAProxy, each of which can be killed,
/// frozen and started again. The cluster ends with the test, however the test ends, because it lives only as long
/// as its standard input.
final class RunningCluster: Sendable {
    private static let program =
        #filePath.split(separator: "/").dropLast(5).map { "/\($0)" }.joined() + "/dev/cluster"

    static var isInstalled: Bool {
        GaleraCluster.isInstalled && access("/usr/sbin/haproxy", X_OK) == 0 && access("/usr/bin/lsof", X_OK) == 0
    }

    let directory: TemporaryDirectory
    private let description: JSONObject

    /// Starts a cluster for `test`, and removes it before this returns.
    ///
    /// - Parameter programs: the directory of the programs; nil: those that were built.
    static func run(by programs: String? = nil, _ test: (RunningCluster) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        // If root runs the tests, the nodes run as another user with separate directories in it.
        chmod(directory.path, 0o711)
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Child.Problem(description: "pipe2: errno \(errno)") }
        let attended = Result {
            let built = try programs ?? built()
            return try Child(
                program, ["up", directory("c"), "--attended", "--json", "--programs", built], input: ends[0])
        }
        close(ends[0])
        do {
            let up = try await attended.get().line(.output, with: "{")
            let description = try #require(try JSONReader.read(Array(up.utf8)).object)
            try await test(RunningCluster(directory, description))
        } catch {
            await end(directory, try? attended.get(), ends[1])
            throw error
        }
        await end(directory, try attended.get(), ends[1])
    }

    private init(_ directory: TemporaryDirectory, _ description: JSONObject) {
        self.directory = directory
        self.description = description
    }

    /// In a separate task, so that a test that was cancelled by its time limit still cleans up.
    private static func end(_ directory: TemporaryDirectory, _ attended: Child?, _ input: Int32) async {
        close(input)
        await Task {
            let ended = await attended?.ended()
            #expect(ended?.status == 0, "\(ended?.errors ?? "")")
            // For the case that it was killed before it could clean up.
            let down = try? await Child.run(program, ["down", directory("c")])
            #expect(down?.status == 0, "\(down?.errors ?? "")")
        }.value
    }

    /// Returns the directory of the programs that were built with the tests.
    private static func built() throws -> String {
        try BuiltProgram.twoefay.path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
    }

    // MARK: The cluster

    var path: String { directory("c") }
    /// The ports of relay1 and relay2.
    var relays: [UInt16] { ["relay1", "relay2"].compactMap { port("relays", $0) } }
    var nodes: [UInt16] { ["node1", "node2", "node3"].compactMap { port("nodes", $0) } }
    var origin: String { description["origin"]?.string ?? "" }
    var proxy: UInt16 { origin.split(separator: ":").last.flatMap { UInt16($0) } ?? 0 }
    var authority: String { description["ca"]?.string ?? "" }

    private func port(_ kind: String, _ name: String) -> UInt16? {
        let port = description[kind]?.object?[name]?.object?["port"]?.integer
        return port.flatMap { UInt16(exactly: $0) }
    }

    /// Returns the path of the settings of relay1, of relay2, or of a copy with another name.
    func settings(_ name: String) -> String { "\(path)/installation/\(name).yaml" }

    // MARK: Failures

    func kill(_ names: String...) async throws { try await run("kill", names) }
    func freeze(_ names: String...) async throws { try await run("freeze", names) }

    /// Ends processes as an operator does.
    func stop(_ names: String...) async throws { try await run("stop", names) }

    /// Starts processes, and returns when they work.
    func start(_ names: String..., by programs: String? = nil) async throws {
        let isRelay = names.contains { $0.hasPrefix("relay") }
        try await run("start", names + (isRelay ? ["--programs", try programs ?? Self.built()] : []))
    }

    private func run(_ command: String, _ arguments: [String]) async throws {
        let ended = try await Child.run(Self.program, [command] + arguments + ["--in", path])
        guard ended.status == 0 else { throw Child.Problem(description: ended.errors) }
    }

    // MARK: The operator's commands

    /// Runs `twoefay` with the settings of relay1, or with others.
    @discardableResult func tool(_ arguments: [String], as settings: String = "relay1") async throws -> String {
        let ended = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", self.settings(settings)] + arguments)
        guard ended.status == 0 else { throw Child.Problem(description: ended.errors) }
        return ended.output
    }

    /// Runs SQL at one node, as its administrator.
    @discardableResult func sql(_ node: String, _ text: String) async throws -> String {
        let ended = try await Child.run(
            "mariadb",
            ["--no-defaults", "--socket=\(path)/\(node)/sock", "--batch", "--skip-column-names", "--execute", text])
        guard ended.status == 0 else { throw Child.Problem(description: ended.errors) }
        return ended.output
    }

    /// Returns the `storage` setting for these ports of this machine, in the order in which they are tried.
    func storage(_ ports: [UInt16], database: String = "twoefay") -> String {
        let hosts = ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
        return "mariadb://twoefay@\(hosts)/\(database)?password_file=../keys/db.password"
    }

    /// Makes relay1 use the link to reach its nodes, and allows both relays to call websites on this machine.
    func lead(relay1 link: NodeLink) async throws {
        try await change { name, text in if name == "relay1" { try text.set("storage", to: storage(link.ports)) } }
    }

    /// Changes the settings of both relays, allows them to call websites on this machine, and starts them
    /// again.
    func change(by programs: String? = nil, _ change: (String, inout String) throws -> Void) async throws {
        for name in ["relay1", "relay2"] {
            var text = try TextFile.read(settings(name))
            try change(name, &text)
            try text.set("webhooks.allow", to: "127.0.0.0/8")
            try TextFile.write(text, to: settings(name))
        }
        try await kill("relay1", "relay2")
        try await start("relay1", "relay2", by: programs)
    }

    /// Returns what a process has written so far.
    func log(_ name: String) throws -> String { try TextFile.read("\(path)/log/\(name).log") }

    /// Returns the number of HAProxy's connections to relays that are alive but do not have their store.
    func astray() async throws -> Int {
        let asked = """
            import socket, sys
            with socket.socket(socket.AF_UNIX) as admin:
                admin.connect(sys.argv[1])
                admin.sendall(b"show stat\\n")
                while said := admin.recv(65536): print(said.decode(), end="")
            """
        let ended = try await Child.run("/usr/bin/python3", ["-c", asked, "\(path)/proxy.sock"])
        let lines = ended.output.split(separator: "\n")
        let rows = lines.map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        // The columns: backend, server, waiting connections, their maximum, and open connections.
        let servers = rows.filter { $0.count > 4 && ($0[0] == "relays" || $0[0] == "alive") && $0[1] != "BACKEND" }
        try #require(servers.contains { $0[0] == "relays" && $0[1] == "relay1" }, "\(ended)")
        return servers.filter { !$0[1].hasPrefix("relay") || $0[0] != "relays" }.compactMap { Int($0[4]) }.reduce(0, +)
    }

    /// Checks that all nodes have the same data.
    func checkNodes(_ database: String = "twoefay") async throws {
        var sums: Set<String> = []
        for node in ["node1", "node2", "node3"] {
            sums.insert(
                try await sql(
                    node,
                    """
                    SET SESSION wsrep_sync_wait = 1; SELECT 1;
                    CHECKSUM TABLE \(database).user, \(database).device, \(database).factor, \(database).challenge,
                        \(database).step
                    """))
        }
        #expect(sums.count == 1, "\(sums)")
    }
}
