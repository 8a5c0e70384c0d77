import Bytes
import Commands
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
            "mail test", "Sends test mails as the relay would, and shows the answers of the mail server.",
            options: [
                .init("to", .one("ADDRESS"), "The recipient (required)."),
                .init(
                    "what", .one("WORD"),
                    "The mail to send: \(SampleMail.allCases.map(\.rawValue).joined(separator: ", ")), or all (default: login).",
                    choices: SampleMail.allCases.map(\.rawValue) + ["all"]),
                .init("language", .one("TAG"), "The language, such as de or de-AT (default: English)."),
                .init("website", .one("NAME"), "The name of the website in the mail (default: Example)."),
            ],
            notes: """
                It needs no store and no running relay. The code in the mail is 123456, and is not valid.
                Exit status 0: the server accepted all mails. 1: it did not accept one, or it is unknown.
                """)
    ) { invocation throws(Failure) in
        guard let to = invocation.value("to") else {
            throw Failure(.usage, "--to ADDRESS is missing", next: "Run 'twoefay mail test --help' for usage.")
        }
        if let complaint = FieldRule.email(to) {
            throw Failure(.usage, "--to \(complaint)", next: "Run 'twoefay mail test --help' for usage.")
        }
        let samples = try SampleMail.named(invocation.value("what") ?? SampleMail.login.rawValue)
        let settings = try Settings.load(invocation)
        let time = SystemTime()
        let files = try LoadedFiles.load(settings, at: time.now())
        guard let mail = files.mail else {
            throw Failure(
                .notFound, "no mail server is set",
                next: "Set mail.url and mail.from in the settings; see docs/operators/mail.md.")
        }
        let messages = samples.map { sample in
            (
                sample,
                sample.message(
                    to: to, website: invocation.value("website") ?? "Example", language: invocation.value("language"),
                    at: time.now())
            )
        }
        let courier = mail.courier(CurrentCatalog(files.wording), time: time, log: Log(minimum: .error))
        defer { courier.close() }
        let attempts: [TestMailAttempt]
        do throws(SystemFailure) {
            attempts = try EventLoop.run("mail", time: time) { _ in
                var attempts: [TestMailAttempt] = []
                for (sample, message) in messages {
                    let (outcome, answer) = await courier.deliver(message)
                    attempts.append(TestMailAttempt(sample: sample, outcome: outcome, answer: answer))
                }
                return attempts
            }
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of threads or file descriptors.")
        }
        return report(attempts, to: to, mail)
    }

    private static func report(_ attempts: [TestMailAttempt], to: String, _ mail: LoadedFiles.Mail) -> Report {
        let server = mail.server.address.text
        var lines = attempts.map { "\($0.sample.rawValue): \($0.line)" }
        let failed = attempts.first { !$0.wasAccepted }
        lines.insert(
            failed == nil
                ? "\(server) accepted \(attempts.count == 1 ? "the mail" : "\(attempts.count) mails") for \(to)."
                : "\(server) did not accept every mail for \(to).", at: 0)
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
    case login, address, activation
    case deviceBound = "device.bound"
    case deviceUnbound = "device.unbound"
    case secretDelivered = "secret.delivered"
    case deviceCertified = "device.certified"
    case userFrozen = "user.frozen"
    case userLocked = "user.locked"
    case codesLocked = "codes.locked"
    case pinLocked = "pin.locked"
    case pinChanged = "pin.changed"
    case pukLocked = "puk.locked"
    case unlockIssued = "unlock.issued"
    case temporaryIssued = "temporary.issued"
    case temporaryUsed = "temporary.used"
    case recoveryLink = "recovery.link"
    case recoveryWaiting = "recovery.waiting"
    case recoveryDone = "recovery.done"
    case recoveryCancelled = "recovery.cancelled"

    static func named(_ word: String) throws(Failure) -> [SampleMail] {
        if word == "all" { return allCases }
        if let sample = SampleMail(rawValue: word) { return [sample] }
        let words = allCases.map(\.rawValue) + ["all"]
        let near = Spelling.nearest(to: word, among: words).map { "; did you mean \($0)?" } ?? ""
        throw Failure(
            .usage, "--what must be one of \(words.joined(separator: ", ")), not \(word)\(near)",
            next: "Run 'twoefay mail test --help' for usage.")
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
        case .activation:
            return .activation(
                Message.Activation(
                    code: Secret(utf8: "123456"), link: Secret(utf8: "twoefay://enrol?website=Example&code=123456")))
        case .deviceBound: return .announcement(.deviceBound, device: "Phone", at: now)
        case .deviceUnbound: return .announcement(.deviceUnbound, device: "Phone", at: now)
        case .secretDelivered: return .announcement(.secretDelivered, device: "Phone", at: now)
        case .deviceCertified: return .announcement(.deviceCertified, device: "Phone", at: now)
        case .userFrozen: return .announcement(.userFrozen, device: nil, at: now)
        case .userLocked: return .announcement(.userLocked, device: nil, at: now)
        case .codesLocked: return .announcement(.codesLocked, device: nil, at: now)
        case .pinLocked: return .announcement(.pinLocked, device: "Phone", at: now)
        case .pinChanged: return .announcement(.pinChanged, device: "Phone", at: now)
        case .pukLocked: return .announcement(.pukLocked, device: "Phone", at: now)
        case .unlockIssued: return .announcement(.unlockIssued, device: "Phone", at: now)
        case .temporaryIssued: return .announcement(.temporaryIssued, device: nil, at: now)
        case .temporaryUsed: return .announcement(.temporaryUsed, device: nil, at: now)
        case .recoveryLink: return .recovery(.begin(Secret(utf8: "https://shop.example/recover#recovery=sample")))
        case .recoveryWaiting:
            return .recovery(
                .announcement(
                    cancel: Secret(utf8: "https://shop.example/recover#cancel=sample"), lost: .totp,
                    readyAt: now + .seconds(86_400))
            )
        case .recoveryDone: return .announcement(.recoveryDone, device: nil, at: now)
        case .recoveryCancelled: return .announcement(.recoveryCancelled, device: nil, at: now)
        }
    }
}

/// A mail, and its outcome.
private struct TestMailAttempt: Sendable {
    let sample: SampleMail
    let outcome: DeliveryOutcome
    let answer: Result<SMTPReply, SMTPFailure>?

    var wasAccepted: Bool { if case .accepted = outcome { true } else { false } }

    private var word: String {
        switch outcome {
        case .accepted: "accepted"
        case .unregistered: "refused"
        case .retry, .unavailable: "retry"
        case .misconfigured, .declined: "undeliverable"
        case .ambiguous: "ambiguous"
        }
    }

    private var failure: SMTPFailure? { if case .failure(let failure)? = answer { failure } else { nil } }
    private var reply: SMTPReply? { if case .success(let reply)? = answer { reply } else { failure?.reply } }

    var line: String {
        guard let reason = outcome.reason else { return "accepted" + (reply.map { ": \($0)" } ?? "") }
        // The server may repeat the address. The operator gave it, so it is no secret here.
        return "\(word), \(failure?.description ?? reason)"
    }

    var next: String {
        guard let failure else { return "Nothing was sent to the server." }
        switch failure.cause {
        case .unknownHost: return "Check the spelling of the host in mail.url, and its DNS entry."
        case .unreachable: return "Check that the server runs, and that no firewall blocks its port."
        case .insecure:
            return "Without TLS, mails are sent only to this machine: let the server offer STARTTLS, or use smtps:."
        case .untrusted: return "If your own authority signed the server's certificate, set mail.ca in the settings."
        case .refused where failure.stage == .login: return "Check mail.username and mail.password_file."
        case .refused where failure.stage == .recipient:
            return "Check that the address exists, and that the server relays mails of this machine to other domains."
        case .refused: return "The server's own log says more about why."
        case .deadline, .broken, .busy, .cancelled, .malformed:
            return failure.mayHaveArrived
                ? "Check whether it arrived. The relay would send it again, with the same Message-ID."
                : "The relay would retry. The server's own log may say more."
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
