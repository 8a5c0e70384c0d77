import Couriers
import Curl
import EST
import Geo
import JSON
import KeyService
import Log
import Pushes
import Relay
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
            if invocation.has("check") { return try check(settings, files, exposed, at: now) }
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

    /// Reports every fault and every warning at once, also if the store cannot be opened.
    private static func check(
        _ settings: Settings, _ files: LoadedFiles, _ exposed: String?, at now: Timestamp
    ) throws(Failure) -> Report {
        var warnings = [exposed, files.estFault].compactMap { $0 } + files.warnings
        warnings += files.certificates.compactMap { $0.warning(at: now) }
        var faults: [Failure] = []
        do throws(Failure) { try settings.requireHardening() } catch { faults.append(error) }
        var schema: SchemaState?
        do throws(Failure) {
            let store = try settings.openStore()
            defer { store.close() }
            let state = SchemaState(version: store.schemaVersion)
            if let warning = state.warning { warnings.append(warning) }
            do throws(StoreFailure) {
                warnings += try settings.directoryWarnings(store)
            } catch {
                throw Failure(store: error)
            }
            schema = state
        } catch {
            faults.append(error)
        }
        guard let schema, faults.isEmpty else { throw Failure(faults, warnings: warnings) }
        let hardening = settings.hardeningReport()
        var lines = [
            "The settings are valid. The store is \(try settings.store()), version \(schema.version); this program knows "
                + "\(schema.known)."
        ]
        lines += describe(files) + [hardening.line] + warnings.map { "Warning: \($0)" }
        let gateways = files.texts?.gateways.map(\.form.name) ?? []
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "storage": .string("\(try settings.store())"), "schema_version": .integer(schema.version),
                "schema_known": .integer(schema.known),
                "keys": settings.keys.map { .string($0.settingsText) } ?? .null,
                "push": .bool(files.push != nil), "fcm": .bool(files.fcm != nil),
                "web_push": .bool(files.webPush != nil),
                "mail": files.mail.map { .string($0.server.address.text) } ?? .null,
                "sms": .array(gateways.map { .string($0) }),
                "languages": .array(files.wording.languages.map { .string($0) }),
                "places": files.geolocation.map(json) ?? .null, "hardening": hardening.json,
                "warnings": .array(warnings.map { .string($0) }),
                "certificates": CertificateExpiry.json(files.certificates, at: now),
            ]))
    }

    /// Returns a line about each part of the relay that the files set up.
    private static func describe(_ files: LoadedFiles) -> [String] {
        var lines: [String] = []
        if let fcm = files.fcm {
            lines.append("Pushes to Android phones are on, in the project \(fcm.account.project).")
        }
        if files.webPush != nil { lines.append("Web Push is on, with the key of push.web.") }
        if files.push == nil, files.fcm == nil, files.webPush == nil {
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
        switch files.issuer {
        case .service(let service):
            lines.append(
                "twoefay-keys at \(service.path) holds the master key and the key of the phones' authority.")
        case .command(let service, let command, _):
            lines.append(
                "twoefay-keys at \(service.path) holds the master key, and runs \(command.words[0]) for the certificates "
                    + "of phones.")
        case .est(let options, _):
            lines.append("The EST server \(options.url.text) issues the certificates of phones.")
        case .authority: break
        }
        return lines
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

extension LoadedFiles {
    /// The reason why the EST server cannot be used; nil if there is none, or no such server.
    fileprivate var estFault: String? {
        guard case .est(let options, let root) = issuer else { return nil }
        return options.fault(root: root).map { "est.url: \($0)" }
    }
}

extension Failure {
    /// Several faults as one failure, with the warnings that were found beside them.
    fileprivate init(_ faults: [Failure], warnings: [String]) {
        self.init(
            faults.first?.code ?? .failed,
            (faults.map(\.message) + warnings.map { "Warning: \($0)" }).joined(separator: "\n"),
            next: faults.map(\.next).joined(separator: "\n"))
    }
}
