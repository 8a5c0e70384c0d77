import Bytes
import Commands
import Crypto
import Daemon
import EventLoop
import Glibc
import HTTP
import JSON
import Phone
import World

extension Tool {
    static let enrolPhone = Subcommand(
        command: Command(
            "phone enrol", "Binds a phone: creates its key, and proves to the relay that it has the key.",
            operands: [.init("URI", "The activation URI, twoefay://enrol?…; - reads it from standard input.")],
            options: [
                Keyring.option,
                .init("name", .one("TEXT"), "The name of the phone."),
                platform,
                .init(
                    "dev-token", .one("TOKEN"),
                    "The device token of a push service. Without it, the phone gets no pushes, and polls the relay."),
                environment,
                .init(
                    "wait", .one("SECONDS"),
                    "How long to wait for an approval, if one is required (default: 600, the lifetime of the code)."
                ),
            ] + SimulatedRootFiles.options,
            notes: """
                The phone trusts the relay only if its authority has the key that the activation pins. The command prints a
                revocation code, which unbinds the phone if it is lost: write it down elsewhere. It is not stored.
                To continue after an interruption, run the same command with the same URI.
                With --attest, name root.pem in the relay's settings (attestation.ios_roots or attestation.android_roots), and
                the app that this command prints. Do so for tests only: anyone with root.key can then attest any phone.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay phone enrol --help' for usage."
        let activation = try readActivation(invocation.operand(0))
        let waitLimit = try timeout(invocation, help)
        let keyring = try Keyring(invocation)
        let platform = try SimulatedRootFiles.platform(invocation)
        let root = try SimulatedRootFiles.root(invocation)
        let entry = try begun(activation, platform, invocation, keyring)
        let output = PhoneOutput(invocation)
        let (bound, code) = try onLoop { loop throws(Failure) in
            try await bind(entry, root, keyring, within: waitLimit, on: loop, output)
        }
        let path = try keyring.update(entry, bound).path
        let until = bound.certificate?.notAfter.rfc3339 ?? ""
        let loss = code.map { code in
            """
            If the phone is lost, this code unbinds it from anywhere. Write it down elsewhere; it is not shown again:

              twoefay phone revoke --relay \(bound.relay.text) --pin=\(Base64URL.encode(bound.pin)) -- \(code)
            """
        }
        return Report(
            """
            The phone is bound to \(bound.website) at \(bound.relay.text), as device \(bound.device ?? "").
            Its key is in \(path). Its certificate expires at \(until), and is renewed before.\(attested(bound))
            \(loss ?? withoutCode)
            """,
            json: .object([
                "event": "verified", "device": .string(bound.device ?? ""), "website": .string(bound.website),
                "relay": .string(bound.relay.text), "thumbprint": .string(bound.thumbprint), "path": .string(path),
                "expires_at": .string(until), "revocation_code": code.map { .string($0) } ?? .null,
                "attestation": .text(bound.verdict),
            ]))
    }

    /// The relay's verdict on the attestation, and the setting for the simulated app.
    private static func attested(_ bound: Enrolment) -> String {
        guard let platform = bound.platformAttests else {
            return bound.verdict.map { "\nThe relay's verdict on its attestation: \($0)." } ?? ""
        }
        let (key, value) = platform.setting
        let verdict = bound.verdict ?? "none; attestations do not count at this website, or the answer was lost"
        return """
            \nThe relay's verdict on its simulated attestation: \(verdict).
            The setting for its app: \(key): \(value)
            """
    }

    private static let withoutCode = """
        An earlier run has bound it, but the answer with the revocation code was lost. If the phone is lost, the website or
        the operator can unbind it. To get a revocation code, run 'twoefay phone unbind', and bind the phone again.
        """

    private static let platform = Command.Option(
        "platform", .one("WORD"), "ios, android, web or other (default: other).")
    private static let environment = Command.Option(
        "environment", .one("WORD"), "Of the push service: production or sandbox (default: production).")

    private static func readActivation(_ text: String) throws(Failure) -> ActivationURI {
        let text = text == "-" ? readLine() ?? "" : text
        do throws(ActivationURI.Malformed) {
            return try ActivationURI(text)
        } catch {
            throw Failure(
                .usage, "the activation URI is not valid: \(error.description)",
                next: "Give the whole URI that the website shows, in quotation marks for the shell.")
        }
    }

    private static func timeout(_ invocation: Invocation, _ help: String) throws(Failure) -> Duration {
        guard let text = invocation.value("wait") else { return Enroller.codeLife }
        guard let seconds = Int64(text), (0...3600).contains(seconds) else {
            throw Failure(.usage, "--wait must be a number of seconds from 0 to 3600, not \(text)", next: help)
        }
        return .seconds(seconds)
    }

    /// Returns a new enrolment, or the one that an earlier run began with the same activation. Its
    /// key may be bound already.
    private static func begun(
        _ activation: ActivationURI, _ attesting: SimulatedPlatform?, _ invocation: Invocation, _ keyring: Keyring
    ) throws(Failure) -> Keyring.Entry {
        if let entry = try keyring.all().first(where: { $0.enrolment.isFor(activation) }) { return entry }
        let (platform, environment) = (
            try PhoneOptions.word(
                invocation, platform,
                attesting.flatMap { Enrolment.Platform(rawValue: $0.kind.rawValue) } ?? Enrolment.Platform.other),
            try PhoneOptions.word(invocation, environment, Enrolment.PushService.production)
        )
        var enrolment: Enrolment
        do throws(CryptoFailure) {
            enrolment = try Enrolment(
                activation, pushToken: invocation.value("dev-token"), name: invocation.value("name"),
                platform: platform, environment: environment, at: SystemTime().now())
        } catch {
            throw Failure(.failed, "the key cannot be created: \(error)", next: Failure.cryptoRemedy)
        }
        enrolment.platformAttests = attesting
        return try keyring.add(enrolment)
    }

    /// Repeats the request until the relay reports that the phone is bound, or that it refuses.
    ///
    /// - Returns: no revocation code if the phone was bound before and the answer with the code was
    ///   lost.
    private static func bind(
        _ entry: Keyring.Entry, _ root: SimulatedRoot?, _ keyring: Keyring, within timeout: Duration,
        on loop: EventLoop, _ output: PhoneOutput
    ) async throws(Failure) -> (Enrolment, revocationCode: String?) {
        let limit = loop.time.instant() + timeout
        do throws(CallFailure) {
            let enroller = try Enroller(
                entry.enrolment, attestedBy: root, language: PhoneOptions.language, loop: loop)
            defer { enroller.close() }
            var lastNotice: (at: Instant, number: String?)?
            while true {
                do throws(CallFailure) {
                    switch try await enroller.attempt() {
                    case .verified(let bound, let code): return (bound, code)
                    case .wait(let device, let number):
                        let now = loop.time.instant()
                        if let lastNotice, lastNotice.number == number, now - lastNotice.at < .seconds(30) { break }
                        lastNotice = (now, number)
                        emit(output, device: device, number: number, thumbprint: entry.enrolment.thumbprint)
                    }
                } catch {
                    if error.isFinal {
                        if let bound = try await enroller.bindingWithoutAnswer() { return (bound, nil) }
                        keyring.remove(entry)
                    }
                    // After a first answer, a relay that fails may work again soon.
                    guard lastNotice != nil, error.mayPass else { throw error }
                }
                guard loop.time.instant() + pause < limit else { break }
                await loop.sleep(for: pause)
            }
        } catch {
            throw Failure(
                error,
                unauthenticated:
                    "The code may be used, expired or rejected; ask the website for a new activation."
            )
        }
        throw Failure(
            .failed, "nobody has approved the phone in time",
            next: "Run the same command again while the code is valid; later, ask the website for a new activation.")
    }

    /// Prints the facts that the person needs to approve on another phone. That phone must show the
    /// same key.
    private static func emit(_ output: PhoneOutput, device: String, number: String?, thumbprint: String) {
        let prompt = number.map { ", with the number \($0)" } ?? ""
        output(
            "Approve this phone on another phone\(prompt). The other phone must show this key: \(thumbprint)",
            "wait",
            [
                "device": .string(device), "number": number.map { .string($0) } ?? .null,
                "thumbprint": .string(thumbprint),
            ])
    }

    /// The pause between two checks for the approval.
    private static let pause: Duration = .seconds(2)
}

extension CallFailure {
    /// Whether the relay refuses the key for good. A relay that was not reached or gave no answer
    /// may still bind the key. So may a relay that answers 409 or 429, for example because the user
    /// has too many phones. In these cases the key is kept for the next run.
    fileprivate var isFinal: Bool {
        guard case .refused(let refusal) = self else { return false }
        return (400..<500).contains(refusal.status) && ![409, 429].contains(refusal.status)
    }
}
