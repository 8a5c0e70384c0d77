import Daemon
import JSON
import Relay
import Storage
import World

extension Settings {
    var withoutRollingKeys: String {
        rolling.nonces == nil
            ? "rolling.nonces is 0, so the relays use a key that is derived from the master key"
            : "There are no keys yet. A relay makes the first one when it starts."
    }
}

extension KeyEra {
    /// Returns the state of the key: next, used, accepted or ended.
    func state(among eras: [KeyEra], at now: Timestamp) -> String {
        if endsAt <= now { return "ended" }
        if RollingKeySchedule.current(eras, at: now) == self { return "used" }
        return startsAt > now ? "next" : "accepted"
    }

    func json(among eras: [KeyEra], at now: Timestamp) -> JSONValue {
        .object([
            "kind": .string(kind.rawValue), "number": .integer(number), "made_at": .string(madeAt.rfc3339),
            "starts_at": .string(startsAt.rfc3339), "ends_at": .string(endsAt.rfc3339),
            "state": .string(state(among: eras, at: now)),
        ])
    }
}

extension Settings {
    /// Returns the lines of the status about the keys that relays make by themselves.
    func lines(about eras: [KeyEra], at now: Timestamp) -> [String] {
        guard rolling.nonces != nil else { return [] }
        guard let current = RollingKeySchedule.current(eras, at: now) else {
            return ["Key for nonces: none is in use. Relays that run make one within a minute."]
        }
        let next = eras.contains { $0.number > current.number } ? ", and the next one is made" : ""
        return [
            "Key for \(current.kind.rawValue): number \(current.number), \(Self.age(now - current.madeAt)) old\(next)."
        ]
    }

    /// Returns the line of the status about the key that seals; none if its file is not readable
    /// here, as beside `twoefay-keys`, or does not say when the key was made.
    func masterKeyLines(at now: Timestamp) -> [String] {
        guard let key = try? loadMasterKey().current, let madeAt = key.madeAt else { return [] }
        return ["Master key \(key.id): \(Self.age(now - madeAt)) old. To change it: twoefay rekey"]
    }

    var masterKeyJSON: JSONValue {
        guard let key = try? loadMasterKey().current else { return .null }
        return .object(["id": .string(key.id), "made_at": .text(key.madeAt?.rfc3339)])
    }

    /// Returns the line of the status about webhook secrets; none without webhooks.
    func lines(about secrets: [WebhookSecretAge], at now: Timestamp) -> [String] {
        guard let oldest = secrets.first else { return [] }
        let rolling = rolling.webhooks == nil ? 0 : secrets.count { $0.fetchedAt != nil }
        return [
            "Webhook secrets: \(secrets.count), of which the relays replace \(rolling). The oldest is "
                + "\(Self.age(now - oldest.madeAt)) old: that of \(oldest.website)."
        ]
    }

    /// Returns a duration in hours, or in days from two days on.
    private static func age(_ duration: Duration) -> String {
        let hours = max(0, duration.components.seconds / 3600)
        return hours < 48 ? "\(hours) h" : "\(hours / 24) days"
    }
}

extension WebhookSecretAge {
    var json: JSONValue {
        .object([
            "website": .string(website), "made_at": .string(madeAt.rfc3339), "fetched_at": .text(fetchedAt?.rfc3339),
        ])
    }
}
