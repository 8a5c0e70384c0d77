import Couriers
import Daemon
import Domain
import EventLoop
import JSON
import Log
import Relay
import Storage
import Webhooks
import World

/// A test webhook, sent now from this machine. It carries no event, and shows whether the website
/// accepts webhooks.
extension WebhookEndpointCommands {
    static let testEvent = "twoefay.test"

    func test() throws(Failure) -> Report {
        let time = SystemTime()
        let secrets = try store.settings.loadMasterKey().open(view, of: id)
        let courier = try LoadedFiles.load(store.settings, at: store.now).webhooks.courier(
            time: time, log: Log(minimum: .error))
        defer { courier.close() }
        guard let event = OutboxEntryID(SystemRandomness().bytes(16)) else { preconditionFailure("16 bytes are an id") }
        let body = WebhookBody.text(Self.testEvent, at: store.now, ["website": .string(name)])
        let webhook = WebhookRequest(event, to: url, body, signedWith: secrets, at: time.now())
        let outcome: WebhookOutcome
        do throws(SystemFailure) {
            outcome = try EventLoop.run("callback", time: time) { _ in await courier.send(webhook) }
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of something: threads or descriptors.")
        }
        return report(outcome, event)
    }

    private func report(_ outcome: WebhookOutcome, _ event: OutboxEntryID) -> Report {
        let code = outcome.exitCode
        var lines = [
            code == .ok
                ? "\(name) took the event: it answered \(outcome.status.map { String($0) } ?? "")."
                : "\(name) did not take the event: \(outcome.reason ?? "").",
            "webhook-id: \(event.text)",
        ]
        if let next = outcome.next { lines.append(next) }
        if view.health.isDisabled {
            lines.append("It is disabled: 'twoefay website webhook \(name) enable' has it called.")
        }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "website": .string(name), "url": .string(url), "id": .string(event.text),
                "accepted": .bool(code == .ok), "status": outcome.status.map { .integer(Int64($0)) } ?? .null,
                "reason": .text(outcome.reason), "state": .string(view.health.word),
            ]), code: code)
    }
}

extension WebhookOutcome {
    fileprivate var status: Int? { if case .answered(let status, _) = self { status } else { nil } }

    fileprivate var exitCode: ExitCode {
        switch self {
        case .answered(200...299, _): .ok
        case .answered: .failed
        case .unanswered, .unsent: .unavailable
        }
    }

    /// The advice for the operator; nil if the website accepted the webhook.
    fileprivate var next: String? {
        switch self {
        case .answered(200...299, _): nil
        case .answered(300...399, _):
            "Nothing is followed: 'twoefay website edit NAME --webhook URL' says where it has moved to."
        case .answered(400, _), .answered(401, _), .answered(403, _):
            "Has it the secret that it is signed with? 'twoefay website webhook NAME rotate-secret' makes another."
        case .answered(404, _), .answered(405, _): "Is the path of the URL right, and taken by POST?"
        case .answered(410, _): "A relay that is answered so disables the website at once."
        case .answered: "Its own log may say more under that id. A relay would try again."
        case .unanswered(.timeout):
            "It has fifteen seconds. It should keep the event, answer, and do the rest afterwards."
        case .unanswered(.refusedAddress), .unanswered(.insecure):
            "Addresses inside, and http: there, are for 'webhooks.allow' in the settings to name."
        case .unanswered(.unknownHost): "Is the host of the URL spelt right, and does a name server know it?"
        case .unanswered(.unreachable):
            "Does the server run, and does a firewall let this machine through to its port?"
        case .unanswered(.untrusted):
            "If its certificate is of an authority of your own, name that as 'webhooks.ca' in the settings."
        case .unanswered(.broken):
            "It closed the connection, or speaks something else than HTTP there. A relay would try again."
        case .unsent: "Nothing has left this machine."
        }
    }
}
