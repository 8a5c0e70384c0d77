import Couriers
import Curl
import EST
import Geo
import JSON
import KeyService
import Log
import Storage
import Templates
import World

/// The program `twoefayd`: reads the settings, then runs the relay.
public enum DaemonProgram {
    static let reader = CommandLineReader(
        program: "twoefayd", about: "Runs the relay until SIGTERM.",
        shared: Program.sharedOptions,
        commands: [
            Command(
                "", "Runs the relay until SIGTERM.",
                options: [
                    Settings.configOption,
                    .init("check", .nothing, "Check the settings, the files that they name and the store, and exit."),
                    .init(
                        "health", .nothing,
                        "Ask the relay that runs on this machine whether it answers, and exit; for a container."),
                ], notes: "The log goes to standard error. To create an installation: twoefay init DIR",
                examples: ["twoefayd --config /etc/twoefay/twoefay.yaml", "twoefayd --check --json"])
        ])

    /// - Parameter commands: those that the relay performs for callers of its control socket.
    public static func run(_ arguments: [String], _ commands: any ControlCommands) -> Int32 {
        Program.run(reader, arguments, complain: Program.printErrorWithinDeadline) { invocation throws(Failure) in
            if invocation.has("health") { return try health(try Settings.load(invocation)) }
            let memory = MemoryProtection.begin()
            let now = SystemTime().now()
            let (settings, files) = try Settings.loadWithFiles(invocation, at: now)
            let exposed = Settings.file(invocation).flatMap { settings.passwordWarning($0) }
            if invocation.has("check") { return try check(settings, files, [exposed].compactMap { $0 }, at: now) }
            let inherited = try InheritedSockets.take()
            let supervisor = Supervisor.connect()
            let listener = try ControlListener.open(settings)
            // This log writes at once, because a log with its own thread must not start before the
            // process is restricted.
            let log = Log(format: settings.log.format, minimum: settings.log.level)
            memory.report(to: log)
            if let fault = supervisor.fault { log.warning("daemon.unmanaged", [.reason: fault]) }
            if let exposed { log.warning("settings.exposed", [.reason: exposed]) }
            let hardening = try settings.restrictProcess(log: log)
            try Daemon.run(
                settings, files, inherited, supervisor, listener, commands, hardening: hardening
            ) { () throws(Failure) in try Settings.loadWithPlaces(invocation) }
            return Report("", json: .object([:]))
        }
    }

    private static func check(
        _ settings: Settings, _ files: LoadedFiles, _ warnings: [String], at now: Timestamp
    ) throws(Failure) -> Report {
        try settings.requireHardening()
        let hardening = settings.hardeningReport()
        let store = try settings.openStore()
        defer { store.close() }
        let schema = SchemaState(version: store.schemaVersion)
        var lines = [
            "The settings are valid. The store is \(try settings.store()), version \(schema.version); this program knows "
                + "\(schema.known)."
        ]
        if files.webPush != nil { lines.append("Web Push is on, with the key of push.web.") }
        if files.push == nil, files.webPush == nil {
            lines.append("No push service is set: no pushes are sent.")
        }
        lines.append(
            files.mail.map { "Mails are sent through \($0.server.address.text), from \($0.from.address)." }
                ?? "No mail server is set: no mails are sent.")
        let gateways = files.texts?.gateways.map(\.form.name) ?? []
        lines.append(
            gateways.isEmpty
                ? "No gateway is set: no text messages are sent."
                : "Text messages are sent through \(gateways.joined(separator: ", ")).")
        lines.append(
            "Mails and text messages are available in \(files.wording.languages.joined(separator: ", "))."
        )
        if let places = files.geolocation {
            lines.append(
                "The geolocation database is \(places.kind)"
                    + (places.madeAt.map { ", created at \($0.rfc3339)." } ?? "."))
        }
        if case .service(let service) = files.issuer {
            lines.append(
                "twoefay-keys at \(service.path) holds the master key and the key of the phones' authority.")
        }
        if case .command(let service, let command, _) = files.issuer {
            lines.append(
                "twoefay-keys at \(service.path) holds the master key, and runs \(command.words[0]) for the certificates "
                    + "of phones.")
        }
        var estFault: String?
        if case .est(let options, let root) = files.issuer {
            lines.append("The EST server \(options.url.text) issues the certificates of phones.")
            estFault = options.fault(root: root).map { "est.url: \($0)" }
        }
        lines.append(hardening.line)
        let warnings =
            warnings + [schema.warning, estFault].compactMap { $0 } + [files.attestations.problem].compactMap { $0 }
            + files.certificates.compactMap { $0.warning(at: now) } + (try settings.groupWarnings(store))
        lines += warnings.map { "Warning: \($0)" }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "storage": .string("\(try settings.store())"), "schema_version": .integer(schema.version),
                "schema_known": .integer(schema.known),
                "keys": settings.keys.map { .string($0.settingsText) } ?? .null,
                "push": .bool(files.push != nil), "web_push": .bool(files.webPush != nil),
                "mail": files.mail.map { .string($0.server.address.text) } ?? .null,
                "sms": .array(gateways.map { .string($0) }),
                "languages": .array(files.wording.languages.map { .string($0) }),
                "places": files.geolocation.map(json) ?? .null, "hardening": hardening.json,
                "warnings": .array(warnings.map { .string($0) }),
                "certificates": CertificateExpiry.json(files.certificates, at: now),
            ]))
    }

    /// The relay is alive if it answers, also while the store is down: a new process would not bring
    /// that back.
    private static func health(_ settings: Settings) throws(Failure) -> Report {
        let authority: [UInt8]
        do throws(Files.Problem) {
            authority = try Files.read(settings.path(of: settings.tls.authority))
        } catch {
            throw Failure(.failed, error.text, next: "Check 'tls.ca' in the settings.")
        }
        let place = settings.listen.settingsText
        if case .silent(let reason) = try Probe.health(settings, authority: authority) {
            throw Failure(
                .unavailable, "the relay at \(place) does not answer: \(reason)",
                next: "Start it with 'twoefayd --config FILE', or read its log.")
        }
        return Report("The relay at \(place) answers.", json: .object(["listen": .string(place)]))
    }

    private static func json(_ geolocation: PlaceFinder) -> JSONValue {
        .object(["kind": .string(geolocation.kind), "made_at": geolocation.madeAt.map { .string($0.rfc3339) } ?? .null])
    }
}
