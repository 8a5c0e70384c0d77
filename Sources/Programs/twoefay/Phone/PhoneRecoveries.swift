import Commands
import Daemon
import JSON
import Phone
import World

extension Tool {
    static let listRecoveries = Subcommand(
        command: Command(
            "phone recoveries", "Lists what is about to be replaced because the user is said to have lost it.",
            options: [Keyring.option, Keyring.choice, PhoneOptions.dpop],
            notes: """
                If you have lost nothing, somebody else may read your mails: stop it with 'twoefay phone stop-recovery'.
                A request about it also comes as a push: 'phone watch' shows it, and denying it stops it, too.
                """)
    ) { invocation throws(Failure) in
        let list = try call(invocation) { phone throws(CallFailure) in try await phone.recoveries() }
        let table = Table(
            ["RECOVERY", "LOST", "STATE", "STARTED", "POSSIBLE FROM"],
            list.map { row in
                [
                    row.id, row.factor == "push" ? "phones" : ScreenText.visible(row.factor),
                    ScreenText.visible(row.state), row.createdAt.rfc3339, row.readyAt?.rfc3339 ?? "",
                ]
            })
        return Report(
            list.isEmpty ? "Nothing is about to be replaced." : table.text,
            json: .object([
                "recoveries": .array(
                    list.map { row in
                        [
                            "recovery": .string(row.id), "factor": .string(row.factor), "state": .string(row.state),
                            "created_at": .string(row.createdAt.rfc3339),
                            "ready_at": row.readyAt.map { .string($0.rfc3339) } ?? .null,
                        ]
                    })
            ]))
    }

    static let stopRecovery = Subcommand(
        command: Command(
            "phone stop-recovery", "Stops the replacement of a factor.",
            operands: [.init("RECOVERY", "The id, as 'phone recoveries' shows it.")],
            options: [Keyring.option, Keyring.choice, PhoneOptions.dpop])
    ) { invocation throws(Failure) in
        let id = invocation.operand(0)
        try call(invocation) { phone throws(CallFailure) in try await phone.cancelRecovery(id) }
        return Report("The replacement is stopped.", json: .object(["recovery": .string(id), "stopped": true]))
    }

    private static func call<Answer: Sendable>(
        _ invocation: Invocation, _ work: @escaping @Sendable (Responder) async throws(CallFailure) -> Answer
    ) throws(Failure) -> Answer {
        let identity = PhoneOptions.identity(invocation)
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        return try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try await fresh(entry, identity, keyring, loop)
                defer { phone.close() }
                return try await work(phone)
            } catch {
                throw Failure(error)
            }
        }
    }
}
