import Bytes
import Commands
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let renewWebsite = Subcommand(
        command: Command(
            "website renew", "Gives a website a new key and certificate beside the present ones.",
            operands: [.init("NAME", "The website's name, as in 'website list'.")],
            options: [
                .init(
                    "end", .one("DAYS"),
                    "Refuse the present keys after so many days (0: at once). By default they stay valid."),
                .init("out", .one("DIR"), "The directory for the new files (default: the current one)."),
                Invocation.yes,
            ],
            notes: """
                Relays accept both keys at once, so the website can change whenever it likes. 'website show' says when each
                key was used last. Then end the former one:
                  twoefay website renew shop --end 30
                  twoefay website revoke-key shop THUMBPRINT
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let end = try DayCount.read(invocation, "end", from: 0)
        let store = try OperatorStore(settings)
        defer { store.close() }
        let website = try store.website(named: invocation.operand(0))
        let before = try store.read(Websites.keys(of: website.id))
        if end == 0, !before.isEmpty {
            try invocation.confirm(
                "\(website.name) is refused at once with its former keys, and cannot call until it uses the new one.")
        }
        let othersEnd = end.map { store.now + .seconds($0 * 86_400) }
        let renewed = try store.renew(
            RenewedWebsite(name: website.name, othersEnd: othersEnd), of: website.id,
            directory: invocation.value("out") ?? "")
        let former =
            switch (before.count, othersEnd) {
            case (0, _): "The website had no other key."
            case (_, let end?): "The former keys end at \(end.rfc3339)."
            case (_, nil): "The former keys stay valid until they expire, or until 'twoefay website revoke-key'."
            }
        let authority = settings.path(of: settings.tls.authority)
        return Report(
            """
            \(website.name) has a new key. Its certificate is \(renewed.certificatePath), its key \(renewed.keyPath); \
            the certificate expires at \(renewed.expiresAt.rfc3339).
            Give the website these two files. \(former)
            To see which key it uses: twoefay website show \(website.name)
            """,
            json: .object([
                "website": .string(website.name), "certificate": .string(renewed.certificatePath),
                "key": .string(renewed.keyPath), "thumbprint": .string(Hex.encode(renewed.thumbprint)),
                "expires_at": .string(renewed.expiresAt.rfc3339), "others_end": .text(othersEnd?.rfc3339),
                "former": .array(before.map { .string(Hex.encode($0.thumbprint)) }),
                "authority": .string(authority),
            ]))
    }
}
