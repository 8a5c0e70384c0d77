import Commands
import Crypto
import Daemon
import JSON
import World

extension Tool {
    static let authorityKey = Command.Option(
        "authority-key", .one("FILE"), "The key of the server's authority (default: ca.key beside the settings).")

    static let renewServer = Subcommand(
        command: Command(
            "server renew", "Issues a new server certificate, by the authority of the installation.",
            options: [
                .init("keep-key", .nothing, "Keep the present private key. By default it is replaced."),
                .init(
                    "host", .many("NAME"),
                    "Names and addresses for the certificate (default: those of the present one)."),
                .init("days", .one("DAYS"), "How long it is valid (default: 825)."),
                authorityKey,
            ],
            notes: """
                It replaces the files of tls.certificate and tls.key. Relays use them after a reload; open connections stay.
                  twoefay server renew && systemctl reload twoefayd
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let server = try ServerCertificate(settings)
        let authority = try ServerAuthority.load(settings, keyPath: invocation.value(authorityKey.name))
        let days = try DayCount.read(invocation, "days", from: 1) ?? ServerCertificate.days
        guard days <= ServerCertificate.days else {
            throw Failure(
                .usage, "--days must be \(ServerCertificate.days) at most, which is what Apple's devices accept",
                next: "Nothing was changed. Give fewer, or leave --days out.")
        }
        let issued = try server.renew(
            by: authority, names: try server.names(invocation.values("host")), keepsKey: invocation.has("keep-key"),
            days: days, at: SystemTime().now())
        let path = settings.path(of: settings.tls.certificate)
        let unrecorded = settings.recordDone(
            "server.renewed", note: "serial \(issued.serial), until \(issued.notAfter.rfc3339)")
        return Report(
            """
            \(path) is renewed, and expires at \(issued.notAfter.rfc3339). The one before expires at \
            \(server.present.notAfter.rfc3339).
            \(settings.reloadHint)\(unrecorded)
            """,
            json: .object([
                "certificate": .string(path), "key": .string(settings.path(of: settings.tls.key)),
                "expires_at": .string(issued.notAfter.rfc3339), "serial": .string(issued.serial),
                "key_kept": .bool(invocation.has("keep-key")),
                "previous_expires_at": .string(server.present.notAfter.rfc3339),
            ]))
    }

    static let listRevoked = Subcommand(
        command: Command(
            "website crl", "Writes the revocation list of the websites' authority anew.",
            options: [
                .init("days", .one("DAYS"), "The days until the next list is due (default: 365)."),
                .init(
                    "out", .one("FILE"),
                    "The file (default: that of tls.revoked, or website-crl.pem beside the settings)."),
            ],
            notes: """
                'website revoke-key' adds certificates to the list in tls.revoked by itself. This command writes the first
                list, and another one before the present one ends: a list that has expired refuses every website.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let days = try DayCount.read(invocation, "days", from: 1) ?? WebsiteRevocationList.days
        let list = try WebsiteRevocationList(settings, path: invocation.value("out"))
        let written = try list.write(days: days, at: SystemTime().now())
        let unrecorded = settings.recordDone(
            "website.crl_written",
            note: "\(counted(written.count, "certificate")), until \(written.nextUpdate.rfc3339)")
        let use =
            settings.tls.revoked == nil
            ? "Set tls.revoked to it, then reload every relay: \(settings.waysToReload)." : settings.reloadHint
        return Report(
            """
            \(list.path) lists \(counted(written.count, "certificate")). The next list is due at \(written.nextUpdate.rfc3339).
            \(use)\(unrecorded)
            """,
            json: .object([
                "path": .string(list.path), "count": .integer(Int64(written.count)),
                "next_update": .string(written.nextUpdate.rfc3339),
            ]))
    }
}
