import Daemon
import JSON
import Relay
import Storage
import World

extension Tool {
    static let listKeys = Subcommand(
        command: Command(
            "keys list", "Lists the keys that the relays make by themselves, with their ages.",
            notes: "The relays make, use and delete these keys by the schedule under 'rolling' in the settings.")
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let rows = try store.read(RollingKeyRows.read(.nonces))
        let eras = rows.map(\.era)
        let table = Table(
            ["KIND", "NUMBER", "MADE", "USED FROM", "ENDS", "STATE"],
            eras.map {
                [
                    $0.kind.rawValue, String($0.number), $0.madeAt.rfc3339, $0.startsAt.rfc3339, $0.endsAt.rfc3339,
                    $0.state(among: eras, at: store.now),
                ]
            }
        ).text
        return Report(
            eras.isEmpty ? settings.withoutRollingKeys : table,
            json: .object(["keys": .array(eras.map { $0.json(among: eras, at: store.now) })]))
    }

    static let rollKey = Subcommand(
        command: Command(
            "keys roll", "Makes a new key now, instead of at its time.",
            operands: [.init("KIND", "The kind of the key, as in 'keys list': nonces.", choices: ["nonces"])],
            options: [.init("now", .nothing, "Use the new key at once, and delete the others: one may have leaked.")],
            notes: """
                Without --now, the relays use the new key after five minutes, and the others stay until they end.
                With --now, each relay reads the new key within a minute, or when it meets it. Until then a phone that changes
                to another relay must prove its key twice. No request is lost.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        guard let kind = RollingKeyKind(rawValue: invocation.operand(0)) else {
            throw Failure(
                .usage, "there is no kind of keys \(invocation.operand(0))", next: "The only kind is nonces.")
        }
        guard let schedule = settings.rolling.nonces else {
            throw Failure(
                .conflict, settings.withoutRollingKeys,
                next: "Nothing was changed. 'twoefay rekey' changes the master key, from which the keys are derived.")
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let sealer = try store.usableSealer()
        let found = RollingKeys(try store.read(RollingKeyRows.read(kind)), with: sealer)
        let roll: KeyRoll?
        do {
            roll = try found.next(
                kind, on: schedule, atOnce: invocation.has("now"), by: .operator, with: sealer,
                randomness: SystemRandomness(), at: store.now)
        } catch {
            throw Failure(
                .failed, "the key cannot be sealed: \(error)", next: "Nothing was changed. " + Failure.cryptoRemedy)
        }
        guard let roll else {
            throw Failure(
                .conflict, "no number is left for a new key: somebody has written the highest one into the store",
                next: "Nothing was changed. To delete all other keys: twoefay keys roll \(kind.rawValue) --now")
        }
        guard try store.run({ RollingKeyRows.roll(roll, as: $0) }).isDone else {
            throw Failure(
                .conflict, "somebody else has made a key at the same time",
                next: "'twoefay keys list' shows it. Repeat the command if a newer one is needed.")
        }
        let era = roll.new.era
        return Report(
            roll.replacesAll
                ? "Key \(era.number) for \(kind.rawValue) is made and in use. The others are deleted."
                : "Key \(era.number) for \(kind.rawValue) is made. The relays use it from \(era.startsAt.rfc3339).",
            json: .object(["key": era.json(among: [era], at: store.now), "replaced": .bool(roll.replacesAll)]))
    }
}
