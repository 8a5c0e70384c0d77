import Bytes
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
            "sms test", "Sends one text message as a login would, and says which gateway took it and what it costs.",
            options: [
                .init("to", .one("NUMBER"), "Where to, in E.164 form such as +4915112345678; it must be given."),
                .init("language", .one("TAG"), "The language of the text, such as de; English otherwise."),
                .init("text", .one("TEXT"), "Another text than that of a login."),
            ],
            notes: """
                The code in it is 123456 and opens nothing. The message is paid for like any other; it counts in no limit.
                Exit status 0: a gateway has it. 1: none took it. 5: none could be reached, or it is not known.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        guard let number = invocation.value("to") else {
            throw Failure(.usage, "--to is missing", next: "Say where the message goes, as in --to +4915112345678.")
        }
        if let fault = FieldRule.phone(number) {
            throw Failure(.usage, "--to \(fault)", next: "With the country and without spaces.")
        }
        let materials = try LoadedFiles.load(settings, at: SystemTime().now())
        guard let texts = materials.texts else {
            throw Failure(
                .notFound, "no gateway is set",
                next: "Name one under 'sms.gateways' in the settings; docs/operators/sms.md shows how.")
        }
        guard texts.limits.allows(number) else {
            throw Failure(
                .conflict, "numbers of that country get no text messages",
                next:
                    "'sms.allow' in the settings lists those that do: \(texts.limits.allowed.map(\.text).joined(separator: ", "))."
            )
        }
        let values = TemplateValues(website: "Twoefay", code: Secret(utf8: "123456"), minutes: 5)
        let text =
            invocation.value("text")
            ?? materials.wording.sms(.loginCode, values, language: invocation.value("language")).text
        let id = SystemRandomness().bytes(16)
        let message = SMSMessage(id: Hex.encode(id), to: number, text: text)
        let report: SMSReport
        do {
            report = try EventLoop.run("sms", time: SystemTime()) { loop in await sent(message, by: texts, on: loop) }
                .get()
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of something: threads or descriptors.")
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
        let size = "\(message.size.parts) part\(message.size.parts == 1 ? "" : "s"), \(message.size.coding.rawValue)"
        let code: ExitCode
        switch report.outcome {
        case .accepted(let gateway):
            lines.append(
                "\(gateway ?? "A gateway") took the message: \(size); it costs \(Settings.amount(report.cost)).")
            code = .ok
        case .unregistered(_, let reason), .misconfigured(_, let reason), .declined(let reason):
            lines.append("No gateway took the message (\(size)): \(reason).")
            code = .failed
        case .retry(_, let reason):
            lines.append("No gateway took the message now (\(size)): \(reason). A login would try again.")
            code = .unavailable
        case .ambiguous(let reason):
            lines.append("It is not known whether a gateway took the message (\(size)): \(reason).")
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
