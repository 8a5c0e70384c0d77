import Bytes
import Couriers
import Curl
import Daemon
import DeliveryOutcomes
import Domain
import EventLoop
import JSON
import Log
import Relay
import Templates
import World

extension Tool {
    static let testMail = Subcommand(
        command: Command(
            "mail test", "Sends a mail as the relay would, and tells what the mail server said.",
            options: [
                .init("to", .one("ADDRESS"), "Who gets it."),
                .init(
                    "what", .one("WORD"),
                    "What it says: \(SampleMail.allCases.map(\.rawValue).joined(separator: ", ")), or all; login if not given."
                ),
                .init("language", .one("TAG"), "In which language, such as de or de-AT; English if not given."),
                .init("website", .one("NAME"), "The website's name in it; Example if not given."),
            ],
            notes: """
                It needs no store and no running relay. The code in it is 123456 and lets nobody in.
                Exit status 0: the server took all of them. 1: it did not, or may not have.
                """)
    ) { invocation throws(Failure) in
        guard let to = invocation.value("to") else {
            throw Failure(.usage, "--to ADDRESS is missing", next: "Run 'twoefay mail test --help' for what it takes.")
        }
        if let complaint = FieldRule.email(to) {
            throw Failure(.usage, "--to \(complaint)", next: "Run 'twoefay mail test --help' for what it takes.")
        }
        let samples = try SampleMail.named(invocation.value("what") ?? SampleMail.login.rawValue)
        let settings = try Settings.load(invocation)
        let time = SystemTime()
        let materials = try LoadedFiles.load(settings, at: time.now())
        guard let mail = materials.mail else {
            throw Failure(
                .notFound, "no mail server is set",
                next: "Set mail.url and mail.from in the settings; docs/operators/mail.md shows how.")
        }
        let messages = samples.map { sample in
            (
                sample,
                sample.message(
                    to: to, website: invocation.value("website") ?? "Example", language: invocation.value("language"),
                    at: time.now())
            )
        }
        let courier = mail.courier(CurrentCatalog(materials.wording), time: time, log: Log(minimum: .error))
        defer { courier.close() }
        let tries: [TestMailAttempt]
        do throws(SystemFailure) {
            tries = try EventLoop.run("mail", time: time) { _ in
                var tries: [TestMailAttempt] = []
                for (sample, message) in messages {
                    let (outcome, said) = await courier.deliver(message)
                    tries.append(TestMailAttempt(sample: sample, outcome: outcome, said: said))
                }
                return tries
            }
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of something: threads or descriptors.")
        }
        return report(tries, to: to, mail)
    }

    private static func report(_ attempts: [TestMailAttempt], to: String, _ mail: LoadedFiles.Mail) -> Report {
        let server = mail.server.address.text
        var lines = attempts.map { "\($0.sample.rawValue): \($0.line)" }
        let failed = attempts.first { !$0.wasTaken }
        lines.insert(
            failed == nil
                ? "\(server) took \(attempts.count == 1 ? "the mail" : "\(attempts.count) mails") for \(to)."
                : "\(server) did not take every mail for \(to).", at: 0)
        if let next = failed?.next { lines.append(next) }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "server": .string(server), "from": .string(mail.from.address), "to": .string(to),
                "mails": .array(attempts.map(\.json)),
            ]), code: failed == nil ? .ok : .failed)
    }
}

/// The mails that the command can send.
private enum SampleMail: String, CaseIterable {
    case login, address
    case deviceBound = "device.bound"
    case deviceUnbound = "device.unbound"
    case userFrozen = "user.frozen"
    case userLocked = "user.locked"
    case codesLocked = "codes.locked"

    static func named(_ word: String) throws(Failure) -> [SampleMail] {
        if word == "all" { return allCases }
        if let sample = SampleMail(rawValue: word) { return [sample] }
        let words = allCases.map(\.rawValue) + ["all"]
        let near = Spelling.nearest(to: word, among: words).map { "; did you mean \($0)?" } ?? ""
        throw Failure(
            .usage, "--what \(word) is none of \(words.joined(separator: ", "))\(near)",
            next: "Run 'twoefay mail test --help' for what it takes.")
    }

    func message(to: String, website: String, language: String?, at now: Timestamp) -> Message {
        var bytes = SystemRandomness().bytes(16)
        // The id begins with zeros, so that test mails can be found in a mail log.
        bytes.replaceSubrange(0..<4, with: [0, 0, 0, 0])
        guard let id = OutboxEntryID(bytes) else { preconditionFailure("16 bytes are an id") }
        return Message(
            id: id, to: to, website: website, name: nil, language: language, content: content(at: now),
            expiresAt: now + .seconds(300))
    }

    private func content(at now: Timestamp) -> Message.Content {
        let code = { (purpose: Message.Code.Purpose) in
            Message.Content.code(
                Message.Code(
                    digits: Secret(utf8: "123456"), purpose: purpose, service: "twoefay mail test", ip: "192.0.2.1",
                    place: nil))
        }
        switch self {
        case .login: return code(.login)
        case .address: return code(.address)
        case .deviceBound: return .announcement(.deviceBound, device: "Phone", at: now)
        case .deviceUnbound: return .announcement(.deviceUnbound, device: "Phone", at: now)
        case .userFrozen: return .announcement(.userFrozen, device: nil, at: now)
        case .userLocked: return .announcement(.userLocked, device: nil, at: now)
        case .codesLocked: return .announcement(.codesLocked, device: nil, at: now)
        }
    }
}

/// A mail, and its outcome.
private struct TestMailAttempt: Sendable {
    let sample: SampleMail
    let outcome: DeliveryOutcome
    let said: Result<SMTPReply, SMTPFailure>?

    var wasTaken: Bool { if case .accepted = outcome { true } else { false } }

    private var word: String {
        switch outcome {
        case .accepted: "accepted"
        case .unregistered: "refused"
        case .retry: "retry"
        case .misconfigured, .declined: "undeliverable"
        case .ambiguous: "ambiguous"
        }
    }

    private var failure: SMTPFailure? { if case .failure(let failure)? = said { failure } else { nil } }
    private var reply: SMTPReply? { if case .success(let reply)? = said { reply } else { failure?.reply } }

    var line: String {
        guard let reason = outcome.reason else { return "taken" + (reply.map { ": \($0)" } ?? "") }
        // The server may repeat the address. The operator gave it, so it is no secret here.
        return "\(word), \(failure?.description ?? reason)"
    }

    var next: String {
        guard let failure else { return "Nothing was said to the server." }
        switch failure.cause {
        case .unknownHost: return "Is the host of mail.url spelt right, and does a name server know it?"
        case .unreachable: return "Does the server run, and does a firewall let this machine through to its port?"
        case .insecure:
            return "Without TLS nothing is said but to this machine: let the server offer STARTTLS, or use smtps:."
        case .untrusted: return "If the server's certificate is of an authority of your own, name that as mail.ca."
        case .refused where failure.stage == .login: return "Are mail.username and mail.password_file right?"
        case .refused where failure.stage == .recipient:
            return "Does the address exist, and may this machine send to others through the server?"
        case .refused: return "The server's own log says more about why."
        case .deadline, .broken, .busy, .cancelled, .malformed:
            return failure.mayHaveArrived
                ? "Look whether it arrived; the relay would send it once more, under the same Message-ID."
                : "The relay would try again. The server's own log may say more."
        }
    }

    var json: JSONValue {
        .object([
            "what": .string(sample.rawValue), "outcome": .string(word),
            "stage": failure.map { .string($0.stage.rawValue) } ?? .null,
            "code": reply.map { .integer(Int64($0.code)) } ?? .null, "text": reply.map { .string($0.text) } ?? .null,
            "reason": failure.map { .string($0.reason) } ?? .null,
        ])
    }
}
