import Bytes
import Commands
import Daemon
import JSON
import Storage
import World

extension Tool {
    static let rekey = Subcommand(
        command: Command(
            "rekey", "Changes the master key in steps, while the relays run.",
            options: [
                .init("use", .nothing, "Seal with the new key. Every relay must have read it before."),
                .init("finish", .nothing, "Remove the old keys, after nothing is sealed under them any more."),
                .init("status", .nothing, "Only show the keys, and how many rows are sealed under each."),
            ],
            notes: """
                Without an option, rekey creates a new key that is known but not used. Each step changes only the key file. Before
                the next step, copy it to the machine of every relay, and send SIGHUP to each.
                  twoefay rekey            then copy the file, and send SIGHUP to all relays
                  twoefay rekey --use      then copy the file, and send SIGHUP to all relays; they reseal what the old key has sealed
                  twoefay rekey --status   until no row needs the old key; kept answers and operation secrets need it for a day
                  twoefay rekey --finish   then copy the file, and restart every relay
                """)
    ) { invocation throws(Failure) in
        let steps = ["use", "finish", "status"].filter(invocation.has)
        guard steps.count <= 1 else {
            throw Failure(
                .usage, "--\(steps[0]) and --\(steps[1]) are separate steps", next: "Run one after the other.")
        }
        let settings = try Settings.load(invocation)
        let keys = try settings.loadMasterKey()
        let path = settings.path(of: settings.masterKey)
        switch steps.first {
        case "use": return try use(keys, of: settings, at: path)
        case "finish": return try finish(keys, of: settings, at: path, invocation.progress())
        case "status": return try KeyReport(keys, settings: settings, invocation.progress()).report
        default: return try addKey(to: keys, of: settings, at: path)
        }
    }

    private static func addKey(
        to keys: MasterKey, of settings: Settings, at path: String
    ) throws(Failure) -> Report {
        if let next = keys.next {
            throw Failure(
                .conflict, "the key \(next.id) exists already, and is not used yet",
                next: "After every relay has read it (SIGHUP): twoefay rekey --use")
        }
        let new = try updated(path) { () throws(MasterKey.Fault) in
            try keys.adding(Secret(SystemRandomness().bytes(32)), at: SystemTime().now())
        }
        try settings.replaceMasterKey(by: new)
        try record("rekey.added", new.next?.id, of: settings)
        return Report(
            """
            The key \(new.next?.id ?? "") is created. Nothing is sealed under it yet; the old keys remain valid.
            1. Keep a copy of \(path) away from this machine: sealed values cannot be opened without it.
            2. Copy it to the machine of every relay (mode 0600), and reload each relay: \(settings.waysToReload).
               Each logs daemon.reloaded. The event daemon.reload means that the relay refused the file and uses the old one.
            3. Then: twoefay rekey --use
            """, json: json(new, step: "made", path: path))
    }

    private static func use(_ keys: MasterKey, of settings: Settings, at path: String) throws(Failure) -> Report {
        guard keys.next != nil else {
            throw Failure(
                .conflict, "there is no next key; \(keys.current.id) is in use",
                next: "Nothing was changed. To create a new key: twoefay rekey")
        }
        let new = try updated(path) { () throws(MasterKey.Fault) in try keys.usingNext() }
        try settings.replaceMasterKey(by: new)
        try record("rekey.used", new.current.id, of: settings)
        return Report(
            """
            Every relay that has read this file seals under \(new.current.id) from now on:
            1. Copy \(path) to the machine of every relay, and reload each: \(settings.waysToReload).
               A relay that does not have the new key cannot open what the others seal.
            2. The relays reseal what is sealed under \(new.old.map(\.id).joined(separator: ", ")), a hundred rows at a time. To see how much is left: twoefay rekey --status
            3. A day later, when nothing is left: twoefay rekey --finish
            """, json: json(new, step: "used", path: path))
    }

    private static func finish(
        _ keys: MasterKey, of settings: Settings, at path: String, _ progress: ProgressLines
    ) throws(Failure) -> Report {
        let old = keys.old.map(\.id)
        guard !old.isEmpty else {
            throw Failure(
                .conflict, "there is no old key; \(keys.current.id) is the only key",
                next: "Nothing was changed. To create a new key: twoefay rekey")
        }
        // Running relays do this as well, but none may be running.
        let store = try OperatorStore(settings)
        defer { store.close() }
        try store.signAgain { progress.show("\($0) signed rows read") }
        let report = try KeyReport(keys, settings: settings, progress)
        if let used = report.rows.first(where: { old.contains($0.id) && $0.isUsed }) {
            throw Failure(
                .conflict, "\(used.shown) are still sealed under the old key \(used.id)",
                next:
                    "Nothing was changed. Running relays reseal factors, webhook secrets, personal values and rolling keys, and sign rows again; kept answers and operation secrets expire after a day. "
                    + "Rows that are not genuine are never signed again: 'twoefay rows verify' lists them; adopt or delete them. "
                    + "'twoefay rekey --status' shows what is left.")
        }
        let new = try updated(path) { () throws(MasterKey.Fault) in try keys.dropping(old) }
        try settings.replaceMasterKey(by: new)
        try record("rekey.finished", new.current.id, of: settings)
        return Report(
            """
            Removed: \(old.joined(separator: ", ")). \(new.current.id) is the only key now.
            1. Earlier backups of the store need the old keys: keep your copies of the old file as long as these backups.
            2. Copy \(path) to the machine of every relay, and restart each, because the ids of operations are derived from the oldest key in
               the file. Do it within a few minutes: until all have restarted, a phone that changes to another relay must prove its key
               twice, and no other relay completes a request that a crash interrupted.
            """, json: json(new, step: "finished", path: path))
    }

    /// Records a step in the audit. The key file is changed already, so a failure says so.
    private static func record(_ event: String, _ key: String?, of settings: Settings) throws(Failure) {
        do throws(Failure) {
            let store = try OperatorStore(settings)
            defer { store.close() }
            try store.run { ProgramEvents.record(event, note: key.map { "key \($0)" }, at: store.now, as: $0) }
        } catch {
            throw Failure(
                error.code, "the key file was changed, but the audit has no row of it: \(error.message)",
                next: "Go on with the next step of rekey. Note this step elsewhere.")
        }
    }

    private static func updated(
        _ path: String, _ change: () throws(MasterKey.Fault) -> MasterKey
    ) throws(Failure) -> MasterKey {
        do throws(MasterKey.Fault) {
            return try change()
        } catch {
            throw Failure(
                .failed, "\(path): \(error.message)",
                next: "Nothing was changed. Complete the previous key change first: twoefay rekey --status")
        }
    }

    private static func json(_ keys: MasterKey, step: String, path: String) -> JSONValue {
        .object([
            "step": .string(step), "file": .string(path),
            "keys": .array(keys.keys.map { .object(["id": .string($0.id), "role": .string(keys.role(of: $0))]) }),
        ])
    }
}

extension MasterKey {
    fileprivate func role(of key: Key) -> String { key.isNext ? "next" : key.id == current.id ? "seals" : "opens" }
}

/// The master keys, and the number of rows in the store under each.
private struct KeyReport {
    struct Row {
        let id: String
        let role: String
        /// The time at which the key was made; nil if the key file does not say it.
        let madeAt: Timestamp?
        let factors: Int64
        let webhooks: Int64
        /// The number of rows with sealed addresses, push tokens or contexts.
        let personal: Int64
        let answers: Int64
        let operations: Int64
        /// The number of keys that the relays make by themselves.
        let rolling: Int64
        /// The number of rows that the key has signed.
        let signed: Int64

        var isUsed: Bool {
            [factors, webhooks, personal, answers, operations, rolling, signed].contains { $0 > 0 }
        }
        var shown: String {
            "\(factors) factors, \(webhooks) webhook endpoints, \(personal) rows with personal values, \(rolling) rolling keys, \(signed) signed rows, \(answers) kept answers and the secrets of \(operations) operations"
        }
    }

    let rows: [Row]

    init(_ keys: MasterKey, settings: Settings, _ progress: ProgressLines) throws(Failure) {
        let store = try OperatorStore(settings)
        defer { store.close() }
        var factors = try store.read(KeyUse.factors)
        progress.show("counting the signed rows")
        var endpoints = try store.read(KeyUse.webhooks)
        var operations = try store.read(KeyUse.operations)
        var rolling = try store.read(KeyUse.rolling)
        var signed = try store.read(RowQueries.counts(of: try keys.usableRowAuthenticator()))
        var rows: [Row] = []
        for key in keys.keys {
            progress.show("counting the rows under the key \(key.id)")
            rows.append(
                Row(
                    id: key.id, role: keys.role(of: key), madeAt: key.madeAt,
                    factors: factors.removeValue(forKey: key.id) ?? 0,
                    webhooks: endpoints.removeValue(forKey: key.id) ?? 0,
                    personal: try store.read(KeyUse.personal(sealedBy: key.id)),
                    answers: try store.read(KeyUse.answers(sealedBy: key.id)),
                    operations: operations.removeValue(forKey: key.id) ?? 0,
                    rolling: rolling.removeValue(forKey: key.id) ?? 0,
                    signed: signed.removeValue(forKey: key.id) ?? 0))
        }
        // These rows are sealed or signed under keys that the file does not hold.
        let missing = [factors, endpoints, operations, rolling, signed].reduce(into: Set()) { $0.formUnion($1.keys) }
        for id in missing.sorted() {
            rows.append(
                Row(
                    id: id, role: "missing", madeAt: nil, factors: factors[id] ?? 0, webhooks: endpoints[id] ?? 0,
                    personal: try store.read(KeyUse.personal(sealedBy: id)), answers: 0,
                    operations: operations[id] ?? 0, rolling: rolling[id] ?? 0, signed: signed[id] ?? 0))
        }
        self.rows = rows
    }

    var report: Report {
        let table = Table(
            [
                "KEY", "ROLE", "MADE", "FACTORS", "WEBHOOKS", "PERSONAL", "KEPT ANSWERS", "OPERATIONS", "ROLLING KEYS",
                "SIGNED ROWS",
            ],
            rows.map {
                [
                    $0.id, $0.role, $0.madeAt?.rfc3339 ?? "-", String($0.factors), String($0.webhooks),
                    String($0.personal),
                    String($0.answers), String($0.operations), String($0.rolling), String($0.signed),
                ]
            }
        ).text
        let missing = rows.contains { $0.role == "missing" }
        let warning =
            "\n\nNo relay can open what is sealed under a missing key: restore the key from your copies of the file."
        return Report(
            table + (missing ? warning : ""),
            json: .object([
                "keys": .array(
                    rows.map {
                        .object([
                            "id": .string($0.id), "role": .string($0.role),
                            "made_at": .text($0.madeAt?.rfc3339), "factors": .integer($0.factors),
                            "webhooks": .integer($0.webhooks), "personal": .integer($0.personal),
                            "answers": .integer($0.answers),
                            "operations": .integer($0.operations), "rolling_keys": .integer($0.rolling),
                            "signed_rows": .integer($0.signed),
                        ])
                    })
            ]), code: missing ? .failed : .ok)
    }
}
