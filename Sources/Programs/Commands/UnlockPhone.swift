import Crypto
import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let unlockCode = Subcommand(
        command: Command(
            "device unlock-code", "Issues a code with which the person can set a new PIN on a phone.",
            operands: [.init("DEVICE", "The phone's id of 32 digits, as in 'device list'.")],
            options: [
                .init("withdraw", .nothing, "Make the code void that was issued before, and issue none.")
            ],
            notes: """
                For a person who has forgotten the PIN and the PUK, or locked both. Check first who the person is, then read the
                code out. The person types it into the app of that phone, with a new PIN; nobody else can use it. The code is
                valid for ten minutes and once; five wrong ones make it void, and so does a further code. The user and the
                website are told of it. Never call somebody to ask for a code: the help desk only reads codes out.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let device = try store.device(invocation)
        if invocation.has("withdraw") { return try withdraw(device, store) }
        guard device.view.state == .active else {
            throw Failure(
                .conflict, "the phone \(device.view.id.text) of \(device.owner) is \(device.view.state.rawValue)",
                next: device.view.state == .suspended
                    ? "To accept its answers again: twoefay device resume \(device.view.id.text)"
                    : "Only an active phone can be unlocked. Nothing was changed.")
        }
        let website = try store.website(named: device.website)
        let operation = try store.newOperation()
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        let sealer = try store.usableSealer()
        let new: NewUnlockCode
        do throws(CryptoFailure) {
            new = try NewUnlockCode(
                drawn, for: device.view.id, of: device.user, website: website.id, at: store.now, as: operation,
                by: sealer, SystemRandomness())
        } catch {
            throw Failure(.failed, "\(error)", next: "Nothing was changed. " + Failure.cryptoRemedy)
        }
        guard let issued = try store.read(UnlockCodes.issue(new, as: operation)) else {
            throw Failure(
                .conflict, "the phone \(device.view.id.text) of \(device.owner) has no PIN",
                next: "The person sets the first PIN in the app. Nothing was changed.")
        }
        return report(UnlockCode.text(drawn, counter: issued.counter), issued, device)
    }

    private static func report(_ code: String, _ issued: UnlockCodes.Outcome, _ device: Accounts.Device) -> Report {
        let id = device.view.id.text
        return Report(
            """
            \(code.prefix(4)) \(code.dropFirst(4))
            This code sets a new PIN on the phone \(id) of \(device.owner), once, until \(issued.expiresAt.rfc3339).
            Read it out to the person, who types it into the app with a new PIN. To withdraw it: twoefay device unlock-code \(id) --withdraw
            """,
            json: .object([
                "device": .string(id), "user": .string(device.username), "website": .string(device.website),
                "code": .string(code), "counter": .integer(issued.counter),
                "expires_at": .string(issued.expiresAt.rfc3339), "tries": .integer(Int64(UnlockCode.tries)),
            ]))
    }

    private static func withdraw(_ device: Accounts.Device, _ store: OperatorStore) throws(Failure) -> Report {
        let id = device.view.id
        guard try store.run({ UnlockCodes.withdraw(id, of: device.user, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "the phone \(id.text) of \(device.owner) has no unlock code",
                next: "Nothing was changed. It was used, or there was none.")
        }
        return Report(
            "The unlock code of the phone \(id.text) of \(device.owner) is void.",
            json: .object([
                "device": .string(id.text), "user": .string(device.username), "website": .string(device.website),
                "code": .null,
            ]))
    }
}
