import Glibc
import Synchronization

/// Three real MariaDB nodes with Galera, which form one database with all data on each node. They
/// end when the test process ends in any way.
///
/// Galera's timeouts have their default values: when a node is killed or frozen, all commits wait
/// about six seconds.
public final class GaleraCluster: Sendable {
    public typealias Failed = MariaDBServer.Failed

    public let nodes: [GaleraNode]
    private let databases = Atomic<Int>(0)

    /// The cluster that tests share. These tests run one after the other, and call `mend` after
    /// they damage it.
    public static func shared() throws -> GaleraCluster { try common.get() }

    private static let common = Result { try GaleraCluster() }

    /// Returns true if Galera is installed. The copy of a whole node needs rsync, and rsync's
    /// daemon needs an account other than root.
    public static var isInstalled: Bool {
        let programs = ["/usr/sbin/mariadbd", "/usr/bin/wsrep_sst_rsync", "/usr/bin/rsync", GaleraNode.provider]
        return programs.allSatisfy { (program: String) in access(program, R_OK) == 0 }
            && (getuid() != 0 || getpwnam("mysql") != nil)
    }

    public init() throws {
        let ports = try (1...3).map { _ in try GaleraNode.Ports() }
        let groups = ports.map { "127.0.0.1:\($0.group.port)" }.joined(separator: ",")
        nodes = try ports.enumerated().map { number, ports in
            try GaleraNode(name: "node\(number + 1)", ports: ports, groups: groups)
        }
        for (number, node) in nodes.enumerated() {
            try node.begin(theCluster: number == 0)
            try node.awaitSynced(of: number + 1)
        }
    }

    /// Creates a database, which is on all nodes when this returns: Galera replicates schema
    /// changes synchronously.
    public func freshDatabase() throws -> String {
        let name = "cluster\(databases.wrappingAdd(1, ordering: .relaxed).newValue)"
        try nodes[0].sql("CREATE DATABASE \(name)")
        return name
    }

    /// Returns a storage URL with all nodes in order, beginning with `first`.
    public func url(_ database: String, first: Int = 0) -> String {
        let hosts = (nodes.indices.map { nodes[($0 + first) % nodes.count] }).map { "127.0.0.1:\($0.port)" }
        return "mariadb://root@\(hosts.joined(separator: ","))/\(database)"
    }

    /// Restores the cluster: all nodes run and have the same data when this returns.
    public func mend() throws {
        for node in nodes { node.thaw() }
        // Start all of them first: one node alone may have to wait for a majority.
        let dead = nodes.filter { !$0.runs }
        for node in dead { try node.comeBack() }
        for node in nodes { try node.awaitSynced(of: nodes.count) }
    }
}

public final class GaleraNode: Sendable {
    struct Ports: Sendable {
        let sql, group, missed, copy: FreePort

        init() throws {
            (sql, group, missed, copy) = (try FreePort(), try FreePort(), try FreePort(), try FreePort())
        }
    }

    static let provider = "/usr/lib/galera/libgalera_smm.so"

    public let name: String
    public var port: UInt16 { ports.sql.port }
    private let ports: Ports
    private let options: [String]
    private let process: MariaDBProcess

    init(name: String, ports: Ports, groups: String) throws {
        (self.name, self.ports) = (name, ports)
        process = try MariaDBProcess()
        let own = "127.0.0.1:\(ports.group.port)"
        // `deploy/node.cnf` explains each option.
        options =
            Self.user + [
                "--innodb-log-file-size=16M", "--performance-schema=OFF", "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2", "--innodb-force-primary-key=ON", "--wsrep-on=ON",
                "--wsrep-provider=\(Self.provider)", "--wsrep-cluster-name=twoefay",
                "--wsrep-cluster-address=gcomm://\(groups)", "--wsrep-node-name=\(name)",
                "--wsrep-node-address=\(own)", "--wsrep-slave-threads=2", "--wsrep-sst-method=rsync",
                "--wsrep-sst-receive-address=127.0.0.1:\(ports.copy.port)",
                """
                --wsrep-provider-options=gcache.size=16M; gcache.recover=yes; base_host=127.0.0.1; \
                base_port=\(ports.group.port); gmcast.listen_addr=tcp://\(own); \
                ist.recv_addr=127.0.0.1:\(ports.missed.port)
                """,
            ]
        guard mkdir("\(process.directory)/data", 0o700) == 0 else { throw failed("mkdir: \(errno)") }
        guard getuid() == 0 else { return }
        guard let user = getpwnam("mysql")?.pointee else { throw failed("there is no user mysql") }
        for path in [process.directory, "\(process.directory)/data", "\(process.directory)/ready"] {
            guard chown(path, user.pw_uid, user.pw_gid) == 0 else { throw failed("chown: \(errno)") }
        }
    }

    private func failed(_ text: String) -> GaleraCluster.Failed {
        GaleraCluster.Failed(description: "\(name): \(text)")
    }

    /// The copy of a node drops root's rights and could not write then, so nodes run without them
    /// from the start.
    private static let user = getuid() == 0 ? ["--user=mysql"] : []

    // MARK: Use

    /// Runs SQL as the node's administrator.
    public func sql(_ text: String) throws {
        guard try process.sql(text) != nil else { throw failed("failed: \(text)") }
    }

    /// Returns a status variable; nil if the node does not answer.
    public func status(_ name: String) throws -> String? {
        // A frozen node reports its old state until it hears from the others. It must therefore
        // synchronise with them first.
        try process.sql("SET SESSION wsrep_sync_wait = 1; SELECT 1; SHOW STATUS LIKE '\(name)'")?
            .split(separator: "\n").last?.split(separator: "\t").last.map(String.init)
    }

    /// Returns when the cluster has `size` nodes and this node has all data.
    public func awaitSynced(of size: Int) throws {
        for _ in 0..<1200 {
            if try status("wsrep_local_state") == "4", try status("wsrep_cluster_status") == "Primary",
                try status("wsrep_cluster_size") == "\(size)"
            {
                return
            }
            guard runs else { throw failed("ended by itself: \(process.log)") }
            usleep(100_000)
        }
        throw failed("is not in step with the others: \(process.log)")
    }

    // MARK: Faults

    public var runs: Bool { process.runs }

    /// Kills the node with SIGKILL, and returns when it is dead.
    public func kill() { process.kill() }

    /// Stops the node with SIGSTOP; its connections stay open, and nothing answers. After five
    /// seconds the others remove it from the cluster.
    public func freeze() { process.pause() }

    /// Lets the node continue; `awaitSynced(of:)` waits until it has the missed changes.
    public func thaw() { process.resume() }

    /// Restarts a node that was killed, and returns when the cluster has `size` nodes again.
    public func restart(of size: Int = 3) throws {
        try comeBack()
        try awaitSynced(of: size)
    }

    // MARK: Starting

    func begin(theCluster: Bool) throws {
        if theCluster { try process.install(Self.user) }
        try process.start(process.arguments(port: port, options + (theCluster ? ["--wsrep-new-cluster"] : [])))
        // Other nodes are not ready before they have a copy of all data.
        if theCluster { try process.awaitReady() }
    }

    /// Restarts the node with its recovered position. Without it, the node would get a copy of all
    /// data.
    func comeBack() throws {
        let arguments = process.arguments(port: port, options)
        let said = try process.ask(["mariadbd"] + arguments + ["--wsrep-recover"])
        let position = said.split(separator: "\n").last { $0.contains("Recovered position") }?
            .split(separator: " ").last.map { "--wsrep-start-position=\($0)" }
        try process.start(arguments + [position].compactMap(\.self))
    }
}
