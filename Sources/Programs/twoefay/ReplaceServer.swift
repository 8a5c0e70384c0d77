import Bytes
import Commands
import Crypto
import Daemon
import JSON
import Storage
import World

extension Tool {
    static let statePins = Subcommand(
        command: Command(
            "server pins", "Announces the next authority of the server to phones, which pin its key.",
            options: [
                .init("days", .one("DAYS"), "How long phones may take the statement (default: 120)."),
                .init("withdraw", .nothing, "State that the present authority is the only one."), Invocation.yes,
                authorityKey,
            ],
            notes: """
                It creates the next authority (ca-next.pem, and ca-next.key beside the present key), and signs a statement
                with the key of the present one. This needs no relay, so both keys can stay offline. Name the statement in
                tls.pins, and reload. Then 'twoefay status' counts the phones that have not taken it. Repeat it if the
                statement expires, also after 'server switch'. docs/operators/replacing-authorities.md has all steps.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let replacement = ServerReplacement(settings, keyPath: invocation.value(authorityKey.name))
        let days = try DayCount.read(invocation, "days", from: 1) ?? ServerReplacement.days
        let now = SystemTime().now()
        if invocation.has("withdraw") {
            try invocation.confirm("The next authority is given up. Its certificate and key are deleted.")
        }
        let statement =
            invocation.has("withdraw")
            ? try replacement.withdraw(days: days, at: now) : try replacement.announce(days: days, at: now)
        let what =
            statement.pins.count > 1
            ? "announces the next authority" : "states that the present authority is the only one"
        let unrecorded = settings.recordDone(
            "server.pins", note: "statement \(statement.sequence) with \(statement.pins.count) pins")
        return Report(
            """
            \(replacement.pinsPath) \(what). Phones take it until \(statement.expiresAt.rfc3339).
            \(use(settings, replacement))\(unrecorded)
            """,
            json: statement.json(path: replacement.pinsPath))
    }

    static let switchServer = Subcommand(
        command: Command(
            "server switch", "Issues the server's certificate by the next authority, which phones know by now.",
            options: [authorityKey],
            notes: """
                Phones and websites that know only the former authority are still served: the relay sends the certificate of
                the new one as the former one has signed it. Give websites the new ca.pem before 'server finish'. The key of
                the former one becomes ca-former.key, beside the key of the authority.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let replacement = ServerReplacement(settings, keyPath: invocation.value(authorityKey.name))
        let issued = try replacement.change(at: SystemTime().now())
        let authority = settings.path(of: settings.tls.authority)
        let unrecorded = settings.recordDone("server.switched", note: "serial \(issued.serial)")
        return Report(
            """
            \(authority) is now the next authority; the former one is ca-former.pem. The server's certificate expires at \
            \(issued.notAfter.rfc3339).
            \(settings.reloadHint) Give the websites \(authority).\(unrecorded)
            """,
            json: .object([
                "authority": .string(authority), "expires_at": .string(issued.notAfter.rfc3339),
            ]))
    }

    static let finishServer = Subcommand(
        command: Command(
            "server finish", "Ends the replacement of the server's authority: the former one is not used any more.",
            options: [
                authorityKey,
                .init("yes", .nothing, "Do it although phones have not taken the new pin; they must be bound again."),
            ])
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let replacement = ServerReplacement(settings, keyPath: invocation.value(authorityKey.name))
        var missing: Int64 = 0
        if let statement = try replacement.underWay() {
            let store = try OperatorStore(settings)
            defer { store.close() }
            missing = try store.read(StatedPins.missing(statement.sequence))
        }
        guard missing == 0 || invocation.has("yes") else {
            throw Failure(
                .conflict,
                "\(counted(missing, "active phone")) \(missing == 1 ? "has" : "have") not taken the new pin, and would "
                    + "have to be bound again",
                next: "Nothing was changed. Wait for them, or do it with --yes.")
        }
        let statement = try replacement.finish(at: SystemTime().now())
        let unrecorded = settings.recordDone(
            "server.finished", note: "\(counted(missing, "phone")) without the new pin")
        var json = statement.json(path: replacement.pinsPath)
        if case .object(var members) = json {
            members.set("missing", .integer(missing))
            json = .object(members)
        }
        return Report(
            """
            The server's chain ends with the new authority, and \(replacement.pinsPath) states that it is the only one.
            The key of the former authority is deleted. \(use(settings, replacement))\(unrecorded)
            """,
            json: json)
    }

    private static func use(_ settings: Settings, _ replacement: ServerReplacement) -> String {
        settings.tls.pins == nil
            ? "Set tls.pins to \(replacement.pinsPath), and reload every relay: \(settings.waysToReload)."
            : settings.reloadHint
    }
}

extension PinStatement {
    fileprivate func json(path: String) -> JSONValue {
        .object([
            "pins_file": .string(path), "sequence": .integer(sequence),
            "pins": .array(pins.map { .string(Base64URL.encode($0)) }), "expires_at": .string(expiresAt.rfc3339),
        ])
    }
}
