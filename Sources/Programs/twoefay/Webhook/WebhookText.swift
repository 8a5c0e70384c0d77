import Domain
import JSON
import Storage
import Webhooks
import World

/// The output of webhook health for operators.
extension WebhookHealth {
    var word: String {
        switch state {
        case .working: "working"
        case .failing: "failing"
        case .disabled: "disabled"
        }
    }

    /// The state in words, such as `failing since 2026-11-22T08:00:00.000Z, in 3 tries`.
    var shown: String {
        switch state {
        case .working: "working"
        case .failing(let since, let tries):
            "failing since \(since.rfc3339), in \(tries) tr\(tries == 1 ? "y" : "ies")"
        case .disabled(let reason, let since): "disabled since \(since.rfc3339): \(reason.shown)"
        }
    }

    var members: JSONObject {
        var members: JSONObject = ["state": .string(word)]
        switch state {
        case .working: break
        case .failing(let since, let tries):
            members.set("since", .string(since.rfc3339))
            members.set("tries", .integer(Int64(tries)))
        case .disabled(let reason, let since):
            members.set("since", .string(since.rfc3339))
            members.set("reason", .string(reason.rawValue))
        }
        return members
    }
}

extension WebhookHealth.Reason {
    var shown: String {
        switch self {
        case .failures: "nothing arrived for days"
        case .unsubscribed: "the website answered 410"
        case .operator: "by an operator"
        }
    }
}

extension WebhookEndpoints.View {
    /// Returns one line each about health, secrets, pending webhooks and dead letters.
    func lines(of name: String, at now: Timestamp) -> [String] {
        var lines = [health.shown]
        if let until = previousUntil, until > now { lines.append("two secrets are valid, until \(until.rfc3339)") }
        if waiting > 0 {
            lines.append("\(waiting) to be told" + (oldest.map { ", the oldest since \($0.rfc3339)" } ?? ""))
        }
        if dead > 0 {
            lines.append(
                "\(dead) that nobody tries any more: 'twoefay website webhook \(name) replay' has them tried again")
        }
        if health.isDisabled { lines.append("'twoefay website webhook \(name) enable' has it called again") }
        return lines
    }

    func json(at now: Timestamp) -> JSONValue {
        var members = health.members
        members.set("previous_until", .text(previousUntil.flatMap { $0 > now ? $0.rfc3339 : nil }))
        members.set("waiting", .integer(waiting))
        members.set("oldest", .text(oldest?.rfc3339))
        members.set("dead", .integer(dead))
        return .object(members)
    }
}
