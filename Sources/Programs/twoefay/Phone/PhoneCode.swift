import Commands
import Daemon
import EventLoop
import JSON
import Phone
import World

extension Tool {
    static let phoneCode = Subcommand(
        command: Command(
            "phone code", "Shows the code of the phone, which counts without a connection.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop, PhoneOptions.pin,
                .init("fetch", .nothing, "Fetch the secret from the relay first, also if the phone has one."),
            ],
            notes: """
                The first use fetches the secret, sealed to a key of this phone, if the website's policy phone-codes allows
                it; if approvals need the PIN, with --pin. Later uses need no connection. The secret is stored with the phone's keys.
                """)
    ) { invocation throws(Failure) in
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        let (identity, pin) = (PhoneOptions.identity(invocation), try PhoneOptions.pin(invocation))
        var enrolment = entry.enrolment
        let fetches = invocation.has("fetch") || enrolment.codes == nil
        if fetches {
            enrolment = try onLoop { loop throws(Failure) in
                do throws(CallFailure) {
                    let phone = try Responder(
                        entry.enrolment, by: identity, language: PhoneOptions.language, loop: loop)
                    defer { phone.close() }
                    return try await phone.fetchCodes(pin: pin)
                } catch {
                    throw Failure(error)
                }
            }
            try keyring.update(entry, enrolment)
        }
        guard let codes = enrolment.codes else {
            throw Failure(.failed, "the phone has no secret", next: "Run the command again with --fetch.")
        }
        let (code, left) = codes.code(at: SystemTime().now() + enrolment.clockOffset)
        return Report(
            "\(code)\n\(left) seconds left.\(fetches ? " The secret was fetched, and is stored." : "")",
            json: .object([
                "code": .string(code), "seconds_left": .integer(Int64(left)), "factor": .string(codes.factor),
                "fetched": .bool(fetches),
            ]))
    }
}
