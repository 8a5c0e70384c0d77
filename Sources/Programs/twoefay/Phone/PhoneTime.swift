import Commands
import Daemon
import EventLoop
import HTTP
import JSON
import Phone
import World

extension Tool {
    static let phoneTime = Subcommand(
        command: Command(
            "phone time", "Asks the relay for its signed time, and corrects the phone's clock for this relay.",
            options: [Keyring.option, Keyring.choice],
            notes: """
                The offset is stored with the phone. It counts for proofs and codes of this relay only, and never changes
                the clock of this machine. The other commands ask by themselves if the relay's certificate or a proof
                does not fit the clock. But if the certificate has expired by this clock, only this command sets the
                time back: use it on a network that you trust.
                """)
    ) { invocation throws(Failure) in
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        let (signed, changed) = try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try Responder(entry.enrolment, by: .dpop, language: PhoneOptions.language, loop: loop)
                defer { phone.close() }
                return try await phone.synchronise()
            } catch {
                throw Failure(error)
            }
        }
        try keyring.update(entry, changed)
        let (offset, error) = (signed.offset.wholeMilliseconds, signed.uncertainty.wholeMilliseconds)
        let now = (SystemTime().now() + signed.offset).rfc3339
        let state =
            abs(offset) <= error
            ? "This machine's clock agrees with it."
            : "This machine's clock is \(seconds(abs(offset))) s \(offset > 0 ? "behind" : "ahead"); the offset is stored."
        return Report(
            "The time of \(entry.enrolment.relay.text) is \(now), to within \(seconds(error)) s.\n\(state)",
            json: .object([
                "relay": .string(entry.enrolment.relay.text), "time": .string(now),
                "offset_milliseconds": .integer(offset), "uncertainty_milliseconds": .integer(error),
            ]))
    }

    private static func seconds(_ milliseconds: Int64) -> String {
        let rest = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.utf8.count))\(rest)"
    }
}
