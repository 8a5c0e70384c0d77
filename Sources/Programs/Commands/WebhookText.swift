import Domain
import JSON
import Storage
import Webhooks
import World

/// The output of webhook health for operators.
extension WebhookHealth {
    public var word: String {
        switch state {
        case .working: "working"
        case .failing: "failing"
        case .disabled: "disabled"
        }
    }

    /// The state in words, such as `failing since 2026-11-22T08:00:00.000Z, after 3 failed attempts`.
    public var shown: String {
        switch state {
        case .working: "working"
        case .failing(let since, let attempts):
            "failing since \(since.rfc3339), after \(attempts) failed attempt\(attempts == 1 ? "" : "s")"
        case .disabled(let reason, let since): "disabled since \(since.rfc3339): \(reason.shown)"
        }
    }

    public var members: JSONObject {
        var members: JSONObject = ["state": .string(word)]
        switch state {
        case .working: break
        case .failing(let since, let attempts):
            members.set("since", .string(since.rfc3339))
            members.set("tries", .integer(Int64(attempts)))
        case .disabled(let reason, let since):
            members.set("since", .string(since.rfc3339))
            members.set("reason", .string(reason.rawValue))
        }
        return members
    }
}

extension WebhookHealth.Reason {
    public var shown: String {
        switch self {
        case .failures: "the website accepted nothing for three days"
        case .unsubscribed: "the website answered 410"
        case .operator: "by an operator"
        }
    }
}

extension WebhookEndpoints.View {
    /// Returns one line each about health, secrets, pending webhooks and dead letters.
    public func lines(of name: String, at now: Timestamp) -> [String] {
        var lines = [health.shown]
        lines.append("secret made at \(madeAt.rfc3339), " + fetched)
        if let until = previousUntil, until > now { lines.append("two secrets are valid until \(until.shownEnd)") }
        if waiting > 0 {
            lines.append("pending webhooks: \(waiting)" + (oldest.map { ", the oldest from \($0.rfc3339)" } ?? ""))
        }
        if dead > 0 {
            lines.append(
                "dead letters: \(dead); to replay them: twoefay website webhook \(name) replay")
        }
        if health.isDisabled { lines.append("to enable it: twoefay website webhook \(name) enable") }
        return lines
    }

    private var fetched: String {
        fetchedAt.map { "fetched by the website at \($0.rfc3339)" }
            ?? "not fetched by the website, so the relays do not replace it"
    }

    public func json(at now: Timestamp) -> JSONValue {
        var members = health.members
        members.set("secret_made_at", .string(madeAt.rfc3339))
        members.set("secret_fetched_at", .text(fetchedAt?.rfc3339))
        members.set("previous_until", .text(previousUntil.flatMap { $0 > now ? $0.rfc3339 : nil }))
        members.set("waiting", .integer(waiting))
        members.set("oldest", .text(oldest?.rfc3339))
        members.set("dead", .integer(dead))
        return .object(members)
    }
}

extension Timestamp {
    /// The end of a former webhook secret in words.
    public var shownEnd: String {
        self == WebhookSecrets.untilFetched ? "a week after the website has fetched the new one" : rfc3339
    }
}
