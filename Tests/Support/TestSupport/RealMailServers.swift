import Bytes
import Crypto
import Glibc
import JSON

/// A mail as Python's `email` package reads it.
public struct DeliveredMail: Sendable, Equatable {
    public let subject: String
    public let from: String
    public let to: String
    public let id: String
    public let text: String
    /// The PNG image in hexadecimal; empty if there is none.
    public let image: String
    public let defects: Int64

    /// Returns the mails of a maildir, the oldest first, when there are `count`. Only the files
    /// show that a delivery is complete, so the directory is polled.
    public static func inMaildir(_ path: String, _ count: Int = 1) async throws -> [DeliveredMail] {
        let ended = try await Child.run("/usr/bin/python3", ["-c", script, path, "\(count)"])
        guard ended.status == 0, let all = try JSONReader.read(Array(ended.output.utf8)).array else {
            throw Child.Problem(description: "no mails in \(path): \(ended.errors)")
        }
        return all.compactMap(\.object).map { object in
            let text = { (name: String) in object[name]?.string ?? "" }
            return DeliveredMail(
                subject: text("subject"), from: text("from"), to: text("to"), id: text("id"), text: text("text"),
                image: text("image"),
                defects: object["defects"]?.integer ?? -1)
        }
    }

    private static let script = """
        import email, email.policy, glob, json, os, sys, time
        def names():
            return sorted(glob.glob(sys.argv[1] + "/new/*"), key=lambda x: (os.stat(x).st_mtime_ns, x))
        while len(names()) < int(sys.argv[2]):
            time.sleep(0.05)
        def read(name):
            with open(name, "rb") as f:
                m = email.message_from_binary_file(f, policy=email.policy.default)
            return {"subject": str(m["Subject"]), "from": str(m["From"]), "to": str(m["To"]),
                "id": str(m["Message-ID"]), "text": m.get_body(("plain",)).get_content(),
                "image": "".join(p.get_content().hex() for p in m.walk() if p.get_content_type() == "image/png"),
                "defects": sum(len(p.defects) + sum(len(v.defects) for v in p.values()) for p in m.walk())}
        print(json.dumps([read(name) for name in names()]))
        """
}

/// An aiosmtpd server that requires STARTTLS and a login, and stores mails in a maildir.
public final class AioSMTPServer: Sendable {
    public let port: UInt16
    /// The authority that signed its certificate, as PEM.
    public let authority: [UInt8]
    public var maildir: String { directory("mail") }
    /// Files for the settings `mail.ca` and `mail.password_file`.
    public var authorityFile: String { directory("authority.pem") }
    public var passwordFile: String { directory("password") }
    private let directory: TemporaryDirectory
    private let child: Child
    private let reserved: FreePort

    public init(user: String, password: String) async throws {
        directory = try TemporaryDirectory()
        reserved = try FreePort()
        port = reserved.port
        let certificates = try TestCertificates()
        authority = try certificates.websites.certificatePEM()
        try TextFile.write(authority, to: directory("authority.pem"))
        try TextFile.write(password + "\n", to: directory("password"))
        try TextFile.write(certificates.server.certificatePEM(), to: directory("server.pem"))
        try TextFile.write(certificates.server.keyPEM().reveal(), to: directory("server.key"))
        child = try Child(
            "/usr/bin/python3",
            [
                "-c", Self.script, "\(port)", directory("mail"), directory("server.pem"), directory("server.key"), user,
                password,
            ])
        _ = try await child.line(.output, with: "ready")
    }

    deinit { child.signal(SIGKILL) }

    private static let script = """
        import ssl, sys, threading
        from aiosmtpd.controller import Controller
        from aiosmtpd.handlers import Mailbox
        from aiosmtpd.smtp import AuthResult
        port, box, certificate, key, user, password = sys.argv[1:]
        def check(server, session, envelope, mechanism, data):
            right = (data.login, data.password) == (user.encode(), password.encode())
            return AuthResult(success=right, handled=False)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        c = Controller(Mailbox(box), hostname="127.0.0.1", port=int(port), tls_context=context, require_starttls=True,
            authenticator=check, auth_required=True, auth_require_tls=True)
        c.start()
        print("ready", flush=True)
        threading.Event().wait()
        """
}

/// Debian's Postfix with its own port and directory, which stores mails for example.org in a
/// maildir.
///
/// Only root can start Postfix. Its services run under the account postfix, which must have access
/// to the directory; `deploy/test` provides this access.
public final class PostfixServer: Sendable {
    public static var canRun: Bool {
        guard geteuid() == 0, access(program, X_OK) == 0, getpwnam("postfix") != nil else {
            print("Postfix is left out: it is not installed (dev/need test), or this is not root, which it wants.")
            return false
        }
        return true
    }

    private static let program = "/usr/sbin/postfix"
    private static let master = "/usr/lib/postfix/sbin/master"

    public var port: UInt16 { reserved.port }
    public var maildir: String { directory("mail/box") }
    private let directory: TemporaryDirectory
    private let reserved: FreePort
    private let child: Child

    public init() async throws {
        directory = try TemporaryDirectory()
        reserved = try FreePort()
        guard let account = getpwnam("postfix") else { throw Child.Problem(description: "nobody is called postfix") }
        let (user, group) = (account.pointee.pw_uid, account.pointee.pw_gid)
        chmod(directory.path, 0o755)
        for name in ["queue", "data", "mail"] { mkdir(directory(name), 0o755) }
        for name in ["data", "mail"] { chown(directory(name), user, group) }
        try TextFile.write(Self.main(directory.path, user, group), to: directory("main.cf"))
        try TextFile.write(Self.services(reserved.port), to: directory("master.cf"))
        for name in ["main.cf", "master.cf"] { chmod(directory(name), 0o644) }
        // Creates the queue's directories. `postfix start` is not used, because its master would
        // run under a pid that is unknown here.
        let checked = try await Child.run(Self.program, ["-c", directory.path, "check"])
        guard checked.status == 0 else {
            throw Child.Problem(description: "Postfix does not take its configuration: \(checked.errors)")
        }
        child = try Child(Self.master, ["-c", directory.path, "-s"])
        let greeted = try await Child.run("/usr/bin/python3", ["-c", Self.awaits, "\(reserved.port)"])
        guard greeted.status == 0 else {
            let log = (try? TextFile.read(directory("mail.log"))) ?? "no log"
            throw Child.Problem(description: "Postfix does not answer: \(log.suffix(2000))")
        }
    }

    /// The master process ends all services that it started.
    deinit { child.signal(SIGTERM) }

    /// Stops the server, and returns when it has ended.
    public func stop() async {
        child.signal(SIGTERM)
        _ = await child.ended()
    }

    /// A script that waits until the server greets.
    private static let awaits = """
        import socket, sys, time
        for _ in range(600):
            try:
                with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as s:
                    if s.recv(4).startswith(b"220"):
                        sys.exit(0)
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(1)
        """

    private static func main(_ directory: String, _ user: uid_t, _ group: gid_t) -> String {
        """
        compatibility_level = 3.6
        queue_directory = \(directory)/queue
        data_directory = \(directory)/data
        inet_interfaces = 127.0.0.1
        inet_protocols = ipv4
        mynetworks = 127.0.0.0/8
        myhostname = mail.example.org
        mydestination =
        alias_maps =
        alias_database =
        local_recipient_maps =
        virtual_mailbox_domains = example.org
        virtual_mailbox_base = \(directory)/mail
        virtual_mailbox_maps = inline:{ { bob@example.org = box/ } }
        virtual_minimum_uid = 1
        virtual_uid_maps = static:\(user)
        virtual_gid_maps = static:\(group)
        smtpd_recipient_restrictions = permit_mynetworks, reject
        smtpd_helo_required = yes
        smtpd_helo_restrictions = reject_invalid_helo_hostname, reject_non_fqdn_helo_hostname
        strict_rfc821_envelopes = yes
        maillog_file = \(directory)/mail.log
        maillog_file_prefixes = /

        """
    }

    private static func services(_ port: UInt16) -> String {
        """
        127.0.0.1:\(port) inet n - n - - smtpd
        cleanup unix n - n - 0 cleanup
        qmgr unix n - n 300 1 qmgr
        rewrite unix - - n - - trivial-rewrite
        bounce unix - - n - 0 bounce
        defer unix - - n - 0 bounce
        trace unix - - n - 0 bounce
        verify unix - - n - 1 verify
        proxymap unix - - n - - proxymap
        error unix - - n - - error
        retry unix - - n - - error
        virtual unix - n n - - virtual
        anvil unix - - n - 1 anvil
        postlog unix-dgram n - n - 1 postlogd

        """
    }
}
