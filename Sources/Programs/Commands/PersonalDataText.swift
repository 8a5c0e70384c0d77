import Daemon
import JSON
import Relay
import World

extension Settings {
    /// The lines of `twoefay status` about personal values in the store; empty if they were never
    /// sealed.
    func lines(about run: PersonalSealingRun?) -> [String] {
        guard seal == .personal || run?.seals == true || run?.isUnfinished == true || run?.stuck ?? 0 > 0 else {
            return []
        }
        var lines = ["Personal data: \(state(of: run))"]
        if let run, run.stuck > 0 {
            lines.append(
                "Warning: \(run.stuck) personal values cannot be opened. personal.stuck in the log, and "
                    + "'twoefay rows verify', tell more.")
        }
        return lines
    }

    private func state(of run: PersonalSealingRun?) -> String {
        let wanted = seal == .personal ? "sealed" : "in the clear"
        guard let run, run.seals == (seal == .personal) else {
            return "\(wanted) in new rows. The relays have not begun to rewrite the others."
        }
        guard let ended = run.endedAt else {
            return "\(wanted) in new rows. The relays rewrite the others since \(run.startedAt.rfc3339): "
                + "\(run.checked) rows read, \(run.changed) rewritten."
        }
        return "\(wanted), checked at \(ended.rfc3339): \(run.checked) rows read, \(run.changed) rewritten."
    }

    func json(about run: PersonalSealingRun?) -> JSONValue {
        var members: JSONObject = ["seal": .string(seal.rawValue)]
        if let run {
            members.set(
                "run",
                .object([
                    "seal": .string(run.seals ? "personal" : "secrets"), "key": .string(run.keyID),
                    "started_at": .string(run.startedAt.rfc3339),
                    "ended_at": run.endedAt.map { .string($0.rfc3339) } ?? .null,
                    "checked": .integer(run.checked), "changed": .integer(run.changed),
                    "stuck": .integer(run.stuck),
                ]))
        }
        return .object(members)
    }
}

extension PersonalSealingRun {
    fileprivate var isUnfinished: Bool { endedAt == nil }
}
