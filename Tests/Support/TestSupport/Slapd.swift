import Bytes
import Crypto
import Glibc

/// A slapd with its own port, certificate and database. It holds the suffix `dc=example,dc=org`,
/// the administrator `cn=admin` below it, and `ou=people` for the users. Tested by its users.
public final class Slapd: Sendable {
    public static let suffix = "dc=example,dc=org"
    public static let people = "ou=people,\(suffix)"
    public static let admin = "cn=admin,\(suffix)"
    public static let password = "correct horse"

    private static let program = "/usr/sbin/slapd"

    public static var canRun: Bool {
        guard access(program, X_OK) == 0 else {
            print("slapd is left out: it is not installed (dev/need test).")
            return false
        }
        return true
    }

    /// The URL without TLS.
    public var url: String { "ldap://127.0.0.1:\(plain.port)" }
    /// The URL with TLS from the first byte.
    public var secureURL: String { "ldaps://127.0.0.1:\(secure.port)" }
    /// The file with the authority of its certificate.
    public var authority: String { directory("ca.pem") }
    public let directory: TemporaryDirectory
    private let plain: FreePort
    private let secure: FreePort
    private let child: Child
    private let reaper: ProcessReaper

    /// - Parameters:
    ///   - names: the names in its certificate.
    ///   - limits: further lines of its configuration, such as a `sizelimit`.
    public init(names: [String] = ["localhost", "127.0.0.1"], limits: String = "") async throws {
        directory = try TemporaryDirectory()
        (plain, secure) = (try FreePort(), try FreePort())
        let certificates = try TestCertificates()
        let server = try certificates.websites.issueServer(names: names, days: 10, at: certificates.now)
        try TextFile.write(certificates.websites.certificatePEM(), to: directory("ca.pem"))
        try TextFile.write(server.certificatePEM(), to: directory("server.pem"))
        // GnuTLS, the TLS library of Debian's slapd, requires the public key beside the private one.
        try TextFile.write(server.keyPEM().reveal(), to: directory("private.key"))
        let completed = try await Child.run(
            "/usr/bin/openssl", ["ec", "-in", directory("private.key"), "-out", directory("server.key")])
        guard completed.status == 0 else { throw Child.Problem(description: "openssl: \(completed.errors)") }
        mkdir(directory("db"), 0o700)
        try TextFile.write(Self.configuration(directory.path, limits), to: directory("slapd.conf"))
        try TextFile.write(Self.root, to: directory("root.ldif"))
        let loaded = try await Child.run(
            "/usr/sbin/slapadd", ["-f", directory("slapd.conf"), "-l", directory("root.ldif")])
        guard loaded.status == 0 else { throw Child.Problem(description: "slapadd: \(loaded.errors)") }
        child = try Child(
            Self.program,
            [
                "-f", directory("slapd.conf"), "-h",
                "ldap://127.0.0.1:\(plain.port) ldaps://127.0.0.1:\(secure.port)", "-d", "stats",
            ])
        reaper = try ProcessReaper(of: child.pid)
        let listens = try await Child.run("/usr/bin/python3", ["-c", Self.awaits, "\(plain.port)", "\(secure.port)"])
        guard listens.status == 0 else {
            throw Child.Problem(description: "slapd does not listen: \(child.written.errors.suffix(2000))")
        }
    }

    deinit {
        // The process must be dead first, because it could still write into the directory.
        child.killAndWait()
        reaper.dismiss()
    }

    /// Stops the server, and returns when it has ended.
    public func stop() async {
        child.signal(SIGTERM)
        _ = await child.ended()
        reaper.dismiss()
    }

    /// Kills the server, and returns when it is dead.
    public func killAndWait() { child.killAndWait() }

    /// Stops all threads of the server, or lets them continue. Connections stay open.
    public func pause() { child.signal(SIGSTOP) }
    public func resume() { child.signal(SIGCONT) }

    /// The log of its connections and operations.
    public var log: String { child.written.errors }

    /// Applies LDIF with `changetype` lines or new entries.
    public func apply(_ ldif: String) async throws {
        try TextFile.write(ldif, to: directory("change.ldif"))
        let ended = try await Child.run(
            "/usr/bin/ldapmodify",
            ["-a", "-x", "-H", url, "-D", Self.admin, "-w", Self.password, "-f", directory("change.ldif")])
        guard ended.status == 0 else { throw Child.Problem(description: "ldapmodify: \(ended.errors)") }
    }

    /// Adds a person below `people`.
    ///
    /// - Parameter values: further attributes; a value that LDIF cannot contain is written in
    ///   base64.
    public func add(_ uid: String, _ values: [(String, String)] = []) async throws {
        var lines = ["dn: uid=\(uid),\(Self.people)", "objectClass: inetOrgPerson", "cn: \(uid)", "sn: \(uid)"]
        lines += values.map { "\($0):: \(Base64.encode(Array($1.utf8)))" }
        try await apply(lines.joined(separator: "\n") + "\n")
    }

    /// Adds a group of people.
    ///
    /// - Parameter cn: the name, with the escapes of a DN.
    public func addGroup(_ cn: String, _ uids: [String]) async throws {
        let lines = ["dn: cn=\(cn),\(Self.suffix)", "objectClass: groupOfNames"]
        let members = uids.map { "member: uid=\($0),\(Self.people)" }
        try await apply((lines + members).joined(separator: "\n") + "\n")
    }

    public func delete(_ uid: String) async throws {
        try await apply("dn: uid=\(uid),\(Self.people)\nchangetype: delete\n")
    }

    /// A script that waits until both ports accept connections. The server logs its start before
    /// that, so only an attempt shows it.
    private static let awaits = """
        import socket, sys, time
        for port in sys.argv[1:]:
            for _ in range(1200):
                try:
                    socket.create_connection(("127.0.0.1", int(port)), timeout=60).close()
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                sys.exit(1)
        """

    private static func configuration(_ path: String, _ limits: String) -> String {
        """
        include /etc/ldap/schema/core.schema
        include /etc/ldap/schema/cosine.schema
        include /etc/ldap/schema/inetorgperson.schema
        modulepath /usr/lib/ldap
        moduleload back_mdb
        moduleload memberof
        TLSCACertificateFile \(path)/ca.pem
        TLSCertificateFile \(path)/server.pem
        TLSCertificateKeyFile \(path)/server.key
        \(limits)
        database mdb
        maxsize 1073741824
        dbnosync
        directory \(path)/db
        suffix \(suffix)
        rootdn \(admin)
        rootpw "\(password)"
        index objectClass,uid,memberOf eq
        overlay memberof

        """
    }

    private static let root = """
        dn: \(suffix)
        objectClass: dcObject
        objectClass: organization
        o: Example
        dc: example

        dn: \(people)
        objectClass: organizationalUnit
        ou: people

        dn: cn=reader,\(suffix)
        objectClass: organizationalRole
        objectClass: simpleSecurityObject
        cn: reader
        userPassword: reader

        """
}
