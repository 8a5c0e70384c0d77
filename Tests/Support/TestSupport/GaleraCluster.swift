import Glibc
import Synchronization

/// Three real MariaDB nodes with Galera, which are one database: each has everything. They are gone when the test process
/// is, however that ends.
///
/// Galera's own times are its defaults: when a node is killed or frozen, all commits wait for some six seconds.
public final class GaleraCluster: Sendable {
    public typealias Failed = MariaDBServer.Failed

    public let nodes: [GaleraNode]
    private let databases = Atomic<Int>(0)

    /// The one that tests share. They run one after the other, and `mend` what they harmed.
    public static func shared() throws -> GaleraCluster { try common.get() }

    private static let common = Result { try GaleraCluster() }

    /// What copies a whole node needs rsync, and rsync's daemon a user that is not root.
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

    /// On all nodes, when this returns: whatever changes tables happens everywhere at once.
    public func freshDatabase() throws -> String {
        let name = "cluster\(databases.wrappingAdd(1, ordering: .relaxed).newValue)"
        try nodes[0].sql("CREATE DATABASE \(name)")
        return name
    }

    /// For `StorageURL`: all nodes, in their order, `first` in front.
    public func url(_ database: String, first: Int = 0) -> String {
        let hosts = (nodes.indices.map { nodes[($0 + first) % nodes.count] }).map { "127.0.0.1:\($0.port)" }
        return "mariadb://root@\(hosts.joined(separator: ","))/\(database)"
    }

    /// All nodes run and have the same when this returns.
    public func mend() throws {
        for node in nodes { node.thaw() }
        // All of them first: one alone may have to wait for the others to be a majority.
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
        // deploy/node.cnf has the reason of each.
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

    /// What copies a node gives away root's rights, and could not write then: nodes have none to begin with.
    private static let user = getuid() == 0 ? ["--user=mysql"] : []

    // MARK: Using it

    /// Runs SQL as the node's administrator.
    public func sql(_ text: String) throws {
        guard try process.sql(text) != nil else { throw failed("failed: \(text)") }
    }

    /// The value of a status variable; nil if it does not answer.
    public func status(_ name: String) throws -> String? {
        // One that was frozen takes itself for what it was until it hears of the others: so it has to ask them first.
        try process.sql("SET SESSION wsrep_sync_wait = 1; SELECT 1; SHOW STATUS LIKE '\(name)'")?
            .split(separator: "\n").last?.split(separator: "\t").last.map(String.init)
    }

    /// Returns when it is one of so many, and has what they have.
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

    // MARK: Harming it

    public var runs: Bool { process.runs }

    /// kill -9, and it is dead when this returns.
    public func kill() { process.kill() }

    /// It stands still when this returns; its connections stay open and nothing answers. After five seconds the others put
    /// it out.
    public func freeze() { process.pause() }

    /// It goes on; `awaitSynced(of:)` waits until it has what it missed.
    public func thaw() { process.resume() }

    /// One that was killed; returns when it is one of so many again.
    public func restart(of size: Int = 3) throws {
        try comeBack()
        try awaitSynced(of: size)
    }

    // MARK: Starting

    func begin(theCluster: Bool) throws {
        if theCluster { try process.install(Self.user) }
        try process.start(process.arguments(port: port, options + (theCluster ? ["--wsrep-new-cluster"] : [])))
        // Others are not ready before they have a copy of everything.
        if theCluster { try process.awaitReady() }
    }

    /// It is told how far it had come, or it would get a copy of everything.
    func comeBack() throws {
        let arguments = process.arguments(port: port, options)
        let said = try process.ask(["mariadbd"] + arguments + ["--wsrep-recover"])
        let position = said.split(separator: "\n").last { $0.contains("Recovered position") }?
            .split(separator: " ").last.map { "--wsrep-start-position=\($0)" }
        try process.start(arguments + [position].compactMap(\.self))
    }
}
