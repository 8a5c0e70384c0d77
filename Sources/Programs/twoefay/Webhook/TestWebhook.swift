import Commands
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
            throw Failure(.failed, "\(error)", next: "The machine is out of threads or file descriptors.")
        }
        return report(outcome, event)
    }

    private func report(_ outcome: WebhookOutcome, _ event: OutboxEntryID) -> Report {
        let code = outcome.exitCode
        var lines = [
            code == .ok
                ? "\(name) accepted the event: it answered \(outcome.status.map { String($0) } ?? "")."
                : "\(name) did not accept the event: \(outcome.reason ?? "").",
            "webhook-id: \(event.text)",
        ]
        if let next = outcome.next { lines.append(next) }
        if view.health.isDisabled {
            lines.append("Its webhooks are disabled. To enable them: twoefay website webhook \(name) enable")
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
            "Redirects are not followed. To change the URL: twoefay website edit NAME --webhook URL"
        case .answered(400, _), .answered(401, _), .answered(403, _):
            "Check that the website has the current secret. To create a new one: twoefay website webhook NAME rotate-secret"
        case .answered(404, _), .answered(405, _): "Check the path of the URL, and that it accepts POST."
        case .answered(410, _): "A relay disables the webhooks of a website that answers 410."
        case .answered: "The website's log may say more; search for the webhook-id. A relay would retry."
        case .unanswered(.timeout):
            "It must answer within fifteen seconds: store the event, answer, then process it."
        case .unanswered(.refusedAddress), .unanswered(.insecure):
            "Private addresses, and http: URLs to them, must be listed in 'webhooks.allow' in the settings."
        case .unanswered(.unknownHost): "Check the spelling of the host in the URL, and its DNS entry."
        case .unanswered(.unreachable):
            "Check that the server runs, and that no firewall blocks its port."
        case .unanswered(.untrusted):
            "If your own authority signed its certificate, set 'webhooks.ca' in the settings."
        case .unanswered(.broken):
            "It closed the connection, or does not speak HTTP at this port. A relay would retry."
        case .unsent:
            "Nothing was sent. Look at the descriptors and the memory of this machine ('twoefay doctor'), and run it again."
        }
    }
}
