import Crypto
import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    public static let status = Subcommand(
        command: Command(
            "status", "Shows whether the relay is ready, and the state of its store.",
            notes: """
                It requests GET /ready at the origin, as any client would, and reads the store.
                Exit status 0: the relay is ready and the store answers. 5: one of them fails.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let authority: [UInt8]
        do throws(Files.Problem) {
            authority = try Files.read(settings.path(of: settings.tls.authority))
        } catch {
            throw Failure(
                .failed, error.text,
                next: "Check 'tls.ca' in the settings: it names the authority of the relay's certificate.")
        }
        let relay = try Probe.ready(settings, authority: authority)
        let now = SystemTime().now()
        let store = storeStatus(invocation, at: now)
        let origin = settings.origin.settingsText

        var lines = [relay.line(origin)]
        if let line = relay.hardeningLine { lines.append(line) }
        if let line = relay.keysLine { lines.append(line) }
        var members: JSONObject = ["origin": .string(origin), "relay": relay.json]
        switch store {
        case .success(let status):
            lines.append(
                "The store has \(counted(status.work.websites, "active website")) "
                    + "and \(counted(status.work.relays, "running relay")).")
            if let warning = status.schema.warning { lines.append("Warning: \(warning)") }
            for pending in status.work.waiting {
                let late = pending.oldestDue < now ? ", the oldest due since \(pending.oldestDue.rfc3339)" : ""
                lines.append("Pending: \(pending.count) × \(pending.kind)\(late).")
            }
            if status.work.dead > 0 {
                lines.append("Dead letters: \(status.work.dead). To list them: twoefay outbox list --dead")
            }
            if status.work.disabled > 0 {
                lines.append(
                    "\(counted(status.work.disabled, "disabled webhook endpoint")), with "
                        + "\(counted(status.work.shelved, "pending webhook")). To list them: twoefay website list")
            }
            members.set("store", status.work.json)
            members.set("schema", status.schema.json)
            lines += status.texts.lines
            members.set("sms", status.texts.json)
            let directories = settings.directories.all
            lines += directories.map { $0.line(status.syncs[$0.name]) }
            if let warning = status.expiryWarning { lines.append(warning) }
            lines += status.websiteLines(at: now)
            members.set("website_certificates", status.websitesJSON)
            lines += status.tenants.lines
            members.set("website_limits", status.tenants.json)
            lines += status.costs.lines
            members.set("website_costs", status.costs.json)
            lines += status.pinLines(at: now)
            members.set("pins", status.pinsJSON)
            members.set("expiring_users", .integer(status.expiring.count))
            members.set("directories", .array(directories.map { $0.json(status.syncs[$0.name]) }))
            lines += settings.lines(about: status.keys, at: now)
            lines += settings.masterKeyLines(at: now)
            members.set("master_key", settings.masterKeyJSON)
            lines += settings.lines(about: status.secrets, at: now)
            lines += settings.lines(about: status.personal)
            members.set("personal_data", settings.json(about: status.personal))
            members.set("webhook_secrets", .array(status.secrets.map(\.json)))
            members.set("keys", .array(status.keys.map { $0.json(among: status.keys, at: now) }))
        case .failure(let failure):
            lines.append(failure.text)
            members.set("store", failure.json)
        }
        if settings.mail.url == nil {
            lines.append(
                "No mail server is set (mail.url): users are told nothing of locks, new phones and recoveries.")
        }
        members.set("mail", .bool(settings.mail.url != nil))
        let certificates = CertificateExpiry.all(settings)
        lines += certificates.compactMap { $0.warning(at: now) }.map { "Warning: \($0)" }
        members.set("certificates", CertificateExpiry.json(certificates, at: now))
        var isWell = false
        if case .ready = relay, case .success = store { isWell = true }
        return Report(lines.joined(separator: "\n"), json: .object(members), code: isWell ? .ok : .unavailable)
    }

    private static func storeStatus(_ invocation: Invocation, at now: Timestamp) -> Result<StoreReport, Failure> {
        Result { () throws(Failure) in
            let store = try OperatorStore(invocation)
            defer { store.close() }
            let pins = try ServerReplacement(store.settings, keyPath: nil).underWay()
            let missing = try pins.map { statement throws(Failure) in
                try store.read(StatedPins.missing(statement.sequence))
            }
            return StoreReport(
                schema: try store.read(SchemaState.query), pins: pins, missingPins: missing ?? 0,
                work: try store.read(StoreStatus.query),
                texts: try store.read(SMSUsageReport.query(of: now)),
                syncs: try store.read(DirectoryRuns.all),
                expiring: try store.read(Expiries.soon(at: now, most: 1)),
                websites: try store.read(Websites.expiries(at: now)),
                tenants: TenantReport(
                    try store.read(Websites.list()),
                    try store.read(WebsiteUsageRows.totals(of: nil, on: UsageDay(now))), store.settings),
                // A help desk, which may ask the relay for the status, does not see costs.
                costs: invocation.host == nil
                    ? MonthCosts(
                        try store.read(WebsiteUsageReport.query(of: nil, in: String(now.rfc3339.prefix(7)))),
                        store.settings.prices)
                    : MonthCosts([], store.settings.prices),
                keys: try store.read(RollingKeyRows.read(.nonces)).map(\.era),
                secrets: try store.read(WebhookSecretAge.all),
                personal: try store.read(PersonalSealingRuns.last))
        }
    }
}

/// The part of the status that is read from the store.
private struct StoreReport {
    /// The version of the tables.
    let schema: SchemaState
    /// The statement about the next authority of the server; nil if none is announced.
    let pins: PinStatement?
    /// The active phones that have not taken the pin of the next authority.
    let missingPins: Int64
    let work: StoreStatus
    let texts: SMSUsageReport
    let syncs: [String: DirectoryRuns.Last]
    let expiring: Expiries.Found
    /// The ends of the websites' certificates, the first one first.
    let websites: [WebsiteExpiry]
    /// The parts of their limits that the websites have used.
    let tenants: TenantReport
    let costs: MonthCosts
    /// The keys that the relays make by themselves.
    let keys: [KeyEra]
    let secrets: [WebhookSecretAge]
    /// The newest run over all personal values.
    let personal: PersonalSealingRun?

    /// The end of the first website's certificate, as a warning in its last month.
    func websiteLines(at now: Timestamp) -> [String] {
        guard let first = websites.first else { return [] }
        let expiry = CertificateExpiry(setting: first.website, path: first.website, notAfter: first.expiresAt)
        guard let warning = expiry.warning(at: now) else {
            return ["The first certificate of a website expires at \(first.expiresAt.rfc3339): \(first.website)."]
        }
        return ["Warning: the certificate of the website \(warning). Renew it: twoefay website renew \(first.website)"]
    }

    func pinLines(at now: Timestamp) -> [String] {
        guard let pins else { return [] }
        let end =
            pins.expiresAt <= now
            ? "The statement expired at \(pins.expiresAt.rfc3339): run 'twoefay server pins' again."
            : "They can take it until \(pins.expiresAt.rfc3339)."
        return [
            "The server's authority is being replaced: \(counted(missingPins, "active phone")) not yet with the new pin. "
                + end
        ]
    }

    var pinsJSON: JSONValue {
        guard let pins else { return .null }
        return .object([
            "sequence": .integer(pins.sequence), "expires_at": .string(pins.expiresAt.rfc3339),
            "missing": .integer(missingPins),
        ])
    }

    var websitesJSON: JSONValue {
        .array(
            websites.map {
                .object(["website": .string($0.website), "expires_at": .string($0.expiresAt.rfc3339)])
            })
    }

    /// The warning about users who expire soon; nil if there is none.
    var expiryWarning: String? {
        guard let first = expiring.users.first else { return nil }
        return
            "Warning: \(counted(expiring.count, "user")) will expire within seven days, the first at \(first.expiresAt.rfc3339). "
            + "To list them: twoefay user expiring"
    }
}

extension Settings.DirectorySettings {
    fileprivate func line(_ last: DirectoryRuns.Last?) -> String {
        "Directory \(name): last synced \(last?.succeededAt.map { "at \($0.rfc3339)" } ?? "never")"
            + (last.map { ", \($0.state)" } ?? "") + "."
    }
}

/// A number with its noun, such as `1 relay` or `2 relays`.
extension Probe.Answer {
    fileprivate func line(_ origin: String) -> String {
        switch self {
        case .ready: "The relay at \(origin) is ready."
        case .notReady(let dependencies):
            "The relay at \(origin) is not ready: "
                + dependencies.filter { $0.value != "ok" }.keys.sorted().joined(separator: ", ")
        case .silent(let reason):
            "The relay at \(origin) does not answer: \(reason).\nStart it with 'twoefayd --config FILE', or read its log."
        }
    }

    /// The dependencies that `/ready` names; nil if the relay does not answer.
    private var dependencies: [String: String]? {
        switch self {
        case .ready(let all), .notReady(let all): all
        case .silent: nil
        }
    }

    /// The state of the key service; nil if the relay has none.
    fileprivate var keysLine: String? {
        switch dependencies?["key_service"] {
        case nil: nil
        case "ok": "The key service answers."
        default: "The key service does not answer: no phone can be bound until twoefay-keys runs again."
        }
    }

    /// The state of the relay's hardening; nil if the relay does not answer.
    fileprivate var hardeningLine: String? {
        guard let dependencies else { return nil }
        return switch dependencies["hardening"] {
        case "ok": "Its hardening is complete."
        case nil: "Its hardening is off."
        default: "Its hardening is incomplete: hardening.missing in its log says why."
        }
    }

    fileprivate var json: JSONValue {
        switch self {
        case .ready(let dependencies): .object(["state": "ready", "dependencies": Self.object(dependencies)])
        case .notReady(let dependencies): .object(["state": "not_ready", "dependencies": Self.object(dependencies)])
        case .silent(let reason): .object(["state": "silent", "reason": .string(reason)])
        }
    }

    private static func object(_ texts: [String: String]) -> JSONValue {
        .object(JSONObject(texts.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }))
    }
}

extension SchemaState {
    fileprivate var json: JSONValue {
        .object(["version": .integer(version), "known": .integer(known), "is_unfinished": .bool(isUnfinished)])
    }
}

extension StoreStatus {
    fileprivate var json: JSONValue {
        .object([
            "websites": .integer(websites), "relays": .integer(relays), "dead": .integer(dead),
            "disabled_websites": .integer(disabled), "shelved": .integer(shelved),
            "waiting": .array(
                waiting.map {
                    .object([
                        "kind": .string($0.kind), "count": .integer($0.count),
                        "oldest_due": .string($0.oldestDue.rfc3339),
                    ])
                }),
        ])
    }
}

extension SMSUsageReport {
    /// The text messages of today (UTC); empty if there were none.
    fileprivate var lines: [String] {
        guard total.messages > 0 || total.sent > 0 else { return [] }
        let line = { (what: String, line: Line) in
            "\(what): \(line.messages) started, \(line.sent) sent in \(counted(line.parts, "segment")), "
                + "for \(Settings.amount(line.cost))."
        }
        return [line("Text messages today", total)] + prefixes.map { line("  \($0.prefix)", $0) }
    }

    fileprivate var json: JSONValue {
        .object(["today": total.json, "prefixes": .array(prefixes.map(\.json))])
    }
}

extension SMSUsageReport.Line {
    fileprivate var json: JSONValue {
        var members: JSONObject = [
            "messages": .integer(messages), "sent": .integer(sent), "parts": .integer(parts),
            "cost": .string(Settings.amount(cost)),
        ]
        if !prefix.isEmpty { members.set("prefix", .string(prefix)) }
        return .object(members)
    }
}
