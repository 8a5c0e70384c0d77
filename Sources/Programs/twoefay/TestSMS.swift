import Bytes
import Commands
import Daemon
import DeliveryOutcomes
import Domain
import EventLoop
import GSM
import JSON
import Log
import SMS
import Templates
import World

extension Tool {
    static let testSMS = Subcommand(
        command: Command(
            "sms test", "Sends a test text message, and shows the gateway that accepted it and the cost.",
            options: [
                .init("to", .one("NUMBER"), "The recipient in E.164 form, such as +4915112345678 (required)."),
                .init("language", .one("TAG"), "The language of the text, such as de (default: English)."),
                .init("text", .one("TEXT"), "The text to send (default: the text of a login)."),
            ],
            notes: """
                The code in the text is 123456, and is not valid. The message costs as much as any other; no limit counts it.
                Exit status 0: a gateway accepted it. 1: no gateway accepted it. 5: no gateway was reached, or it is unknown.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        guard let number = invocation.value("to") else {
            throw Failure(.usage, "--to is missing", next: "Give the recipient, as in --to +4915112345678.")
        }
        if let fault = FieldRule.phone(number) {
            throw Failure(.usage, "--to \(fault)", next: "Give the number with its country code and without spaces.")
        }
        let files = try LoadedFiles.load(settings, at: SystemTime().now())
        guard let texts = files.texts else {
            throw Failure(
                .notFound, "no gateway is set",
                next: "Set 'sms.gateways' in the settings; see docs/operators/sms.md.")
        }
        guard texts.limits.allows(number) else {
            throw Failure(
                .conflict, "numbers of that country get no text messages",
                next:
                    "'sms.allow' in the settings lists the allowed prefixes: \(texts.limits.allowed.map(\.text).joined(separator: ", "))."
            )
        }
        let values = TemplateValues(website: "Twoefay", code: Secret(utf8: "123456"), minutes: 5)
        let text =
            invocation.value("text")
            ?? files.wording.sms(.loginCode, values, language: invocation.value("language")).text
        let id = SystemRandomness().bytes(16)
        let message = SMSMessage(id: Hex.encode(id), to: number, text: text)
        let report: SMSReport
        do {
            report = try EventLoop.run("sms", time: SystemTime()) { loop in await sent(message, by: texts, on: loop) }
                .get()
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of threads or file descriptors.")
        }
        return makeReport(report, message)
    }

    private static func sent(
        _ message: SMSMessage, by texts: LoadedFiles.SMSFiles, on loop: EventLoop
    ) async -> Result<SMSReport, Failure> {
        do throws(Failure) {
            let exchange = try texts.exchange(on: loop, time: SystemTime(), log: Log(minimum: .error))
            let report = await exchange.send(message, left: .seconds(25))
            await exchange.close()
            return .success(report)
        } catch { return .failure(error) }
    }

    private static func makeReport(_ report: SMSReport, _ message: SMSMessage) -> Report {
        var lines = report.attempts.map { one in
            "Gateway \(one.gateway): \(one.outcome.word.rawValue)" + (one.outcome.reason.map { " (\($0))" } ?? "")
        }
        let size = "\(message.size.parts) segment\(message.size.parts == 1 ? "" : "s"), \(message.size.coding.rawValue)"
        let code: ExitCode
        switch report.outcome {
        case .accepted(let gateway):
            lines.append(
                "\(gateway ?? "A gateway") accepted the message: \(size); it costs \(Settings.amount(report.cost)).")
            code = .ok
        case .unregistered(_, let reason), .misconfigured(_, let reason), .declined(let reason):
            lines.append("No gateway accepted the message (\(size)): \(reason).")
            code = .failed
        case .retry(_, let reason), .unavailable(_, let reason):
            lines.append("No gateway accepted the message yet (\(size)): \(reason). A relay would retry.")
            code = .unavailable
        case .ambiguous(let reason):
            lines.append("It is unknown whether a gateway accepted the message (\(size)): \(reason).")
            code = .unavailable
        }
        let tries = report.attempts.map { one -> JSONValue in
            .object([
                "gateway": .string(one.gateway), "outcome": .string(one.outcome.word.rawValue),
                "reason": one.outcome.reason.map { .string($0) } ?? .null,
            ])
        }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "accepted": .bool(code == .ok), "gateway": report.gateway.map { .string($0) } ?? .null,
                "parts": .integer(Int64(message.size.parts)), "coding": .string(message.size.coding.rawValue),
                "cost": .string(Settings.amount(report.cost)), "tries": .array(tries),
            ]), code: code)
    }
}
