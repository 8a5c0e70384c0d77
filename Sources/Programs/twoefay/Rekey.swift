import Bytes
import Daemon
import JSON
import Storage
import World

extension Tool {
    static let rekey = Subcommand(
        command: Command(
            "rekey", "Changes the master key, in steps: nothing stops, and nothing that is sealed is lost.",
            options: [
                .init("use", .nothing, "Seal under the key that was made; every relay must know it by now."),
                .init("finish", .nothing, "Drop the old keys, once nothing is sealed under them."),
                .init("status", .nothing, "Only tell which keys there are, and how much is sealed under each."),
            ],
            notes: """
                Without an option it makes a new key, which is known but not used. Each step changes the key file alone: copy it to the
                machine of every relay, and send each SIGHUP, before the next step.
                  twoefay rekey            then copy, SIGHUP everywhere
                  twoefay rekey --use      then copy, SIGHUP everywhere; the relays seal anew what the old key has sealed
                  twoefay rekey --status   until nothing is left under the old key; kept answers and secrets of operations are there for a day
                  twoefay rekey --finish   then copy, restart every relay
                """)
    ) { invocation throws(Failure) in
        let steps = ["use", "finish", "status"].filter(invocation.has)
        guard steps.count <= 1 else {
            throw Failure(
                .usage, "--\(steps[0]) and --\(steps[1]) are steps of their own", next: "Take one after the other.")
        }
        let settings = try Settings.load(invocation)
        let keys = try settings.loadMasterKey()
        let path = settings.path(of: settings.masterKey)
        switch steps.first {
        case "use": return try use(keys, of: settings, at: path)
        case "finish": return try finish(keys, of: settings, at: path)
        case "status": return try KeyReport(keys, settings: settings).report
        default: return try addKey(to: keys, of: settings, at: path)
        }
    }

    private static func addKey(
        to keys: MasterKey, of settings: Settings, at path: String
    ) throws(Failure) -> Report {
        if let next = keys.next {
            throw Failure(
                .conflict, "the key \(next.id) is made already, and is not used yet",
                next: "When every relay has read it (SIGHUP): twoefay rekey --use")
        }
        let new = try mended(path) { () throws(MasterKey.Fault) in
            try keys.adding(Secret(SystemRandomness().bytes(32)))
        }
        try settings.replaceMasterKey(by: new)
        return Report(
            """
            The key \(new.next?.id ?? "") is made; nothing is sealed under it yet. The old ones are still there.
            1. Keep a copy of \(path) away from this machine: what is sealed cannot be opened without it.
            2. Copy it to the machine of every relay (mode 0600), and have each read it: systemctl reload twoefayd, or SIGHUP.
               Each logs daemon.reloaded; daemon.reload means that it has refused the file, and knows the old one alone.
            3. Then: twoefay rekey --use
            """, json: json(new, step: "made", path: path))
    }

    private static func use(_ keys: MasterKey, of settings: Settings, at path: String) throws(Failure) -> Report {
        guard keys.next != nil else {
            throw Failure(
                .conflict, "there is no key that waits to be used; \(keys.current.id) is in use",
                next: "Nothing was changed. 'twoefay rekey' makes a new key.")
        }
        let new = try mended(path) { () throws(MasterKey.Fault) in try keys.usingNext() }
        try settings.replaceMasterKey(by: new)
        return Report(
            """
            What is sealed from now on is sealed under \(new.current.id), by every relay that has read this file:
            1. Copy \(path) to the machine of every relay, and send each SIGHUP (systemctl reload twoefayd).
               A relay that does not know the key at all cannot open what the others seal.
            2. They seal anew what is sealed under \(new.old.map(\.id).joined(separator: ", ")), a hundred rows at a time. How much is left: twoefay rekey --status
            3. A day later, when nothing is left: twoefay rekey --finish
            """, json: json(new, step: "used", path: path))
    }

    private static func finish(_ keys: MasterKey, of settings: Settings, at path: String) throws(Failure) -> Report {
        let old = keys.old.map(\.id)
        guard !old.isEmpty else {
            throw Failure(
                .conflict, "there is no old key; \(keys.current.id) is the only one in use",
                next: "Nothing was changed. 'twoefay rekey' makes a new key.")
        }
        // Running relays do this as well, but none may be running.
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        try desk.signAgain()
        let report = try KeyReport(keys, settings: settings)
        if let used = report.rows.first(where: { old.contains($0.id) && $0.isUsed }) {
            throw Failure(
                .conflict, "\(used.shown) are sealed under the old key \(used.id) still",
                next:
                    "Nothing was changed. The relays that use the new key seal factors and webhook secrets anew, and rows are signed anew; answers and secrets of operations are kept for a day. "
                    + "Rows that are not genuine are never signed anew: 'twoefay rows verify' names them; adopt or delete them. "
                    + "'twoefay rekey --status' tells what is left.")
        }
        let new = try mended(path) { () throws(MasterKey.Fault) in try keys.dropping(old) }
        try settings.replaceMasterKey(by: new)
        return Report(
            """
            Dropped: \(old.joined(separator: ", ")). \(new.current.id) is the only key in use.
            1. Backups of the store from before need the old keys: keep your copies of the old file as long as those.
            2. Copy \(path) to the machine of every relay, and restart each: the ids of operations follow from the oldest key of the file, which
               is another one now. Do it within a few minutes: until all have restarted, a phone that comes to another relay has to prove its
               key twice, and a request that a relay left unfinished by a crash is not taken up by another.
            """, json: json(new, step: "finished", path: path))
    }

    private static func mended(
        _ path: String, _ change: () throws(MasterKey.Fault) -> MasterKey
    ) throws(Failure) -> MasterKey {
        do throws(MasterKey.Fault) {
            return try change()
        } catch {
            throw Failure(
                .failed, "\(path): \(error.message)",
                next: "Nothing was changed. Finish the change before: twoefay rekey --status")
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
        let factors: Int64
        let webhooks: Int64
        let answers: Int64
        let operations: Int64
        /// The number of rows that the key has signed.
        let signed: Int64

        var isUsed: Bool { factors > 0 || webhooks > 0 || answers > 0 || operations > 0 || signed > 0 }
        var shown: String {
            "\(factors) factors, \(webhooks) webhook endpoints, \(signed) signed rows, \(answers) kept answers and the secrets of \(operations) operations"
        }
    }

    let rows: [Row]

    init(_ keys: MasterKey, settings: Settings) throws(Failure) {
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        var factors = try desk.read(KeyUse.factors)
        var endpoints = try desk.read(KeyUse.webhooks)
        var operations = try desk.read(KeyUse.operations)
        var signed = try desk.read(RowQueries.counts(of: try keys.usableRowAuthenticator()))
        var rows: [Row] = []
        for key in keys.keys {
            rows.append(
                Row(
                    id: key.id, role: keys.role(of: key), factors: factors.removeValue(forKey: key.id) ?? 0,
                    webhooks: endpoints.removeValue(forKey: key.id) ?? 0,
                    answers: try desk.read(KeyUse.answers(sealedBy: key.id)),
                    operations: operations.removeValue(forKey: key.id) ?? 0,
                    signed: signed.removeValue(forKey: key.id) ?? 0))
        }
        // These rows are sealed or signed under keys that the file does not hold.
        for id in Set(factors.keys).union(endpoints.keys).union(operations.keys).union(signed.keys).sorted() {
            rows.append(
                Row(
                    id: id, role: "missing", factors: factors[id] ?? 0, webhooks: endpoints[id] ?? 0, answers: 0,
                    operations: operations[id] ?? 0, signed: signed[id] ?? 0))
        }
        self.rows = rows
    }

    var report: Report {
        let table = Table(
            ["KEY", "", "FACTORS", "WEBHOOKS", "KEPT ANSWERS", "OPERATIONS", "SIGNED ROWS"],
            rows.map {
                [
                    $0.id, $0.role, String($0.factors), String($0.webhooks), String($0.answers),
                    String($0.operations), String($0.signed),
                ]
            }
        ).text
        let missing = rows.contains { $0.role == "missing" }
        let warning =
            "\n\nWhat is sealed under a missing key opens nowhere: bring the key back from your copies of the file."
        return Report(
            table + (missing ? warning : ""),
            json: .object([
                "keys": .array(
                    rows.map {
                        .object([
                            "id": .string($0.id), "role": .string($0.role), "factors": .integer($0.factors),
                            "webhooks": .integer($0.webhooks), "answers": .integer($0.answers),
                            "operations": .integer($0.operations), "signed_rows": .integer($0.signed),
                        ])
                    })
            ]), code: missing ? .failed : .ok)
    }
}
