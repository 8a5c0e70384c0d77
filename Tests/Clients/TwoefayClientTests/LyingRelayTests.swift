import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

/// The relay turned against its websites: it holds no key of a phone, and everything else.
@Suite struct LyingRelayTests {
    @Test(arguments: Lie.all + Lie.ofForm) func forgedReceiptIsRefused(lie: Lie) async throws {
        var login = try Login()
        let answered = try lie.tell(&login)
        #expect(await login.fault(answered) == lie.fault)
    }

    private static let sent = [
        "website", "username", "service", "action", "details", "ip", "user_agent", "request", "number_digits",
    ]

    @Test("Left out of what the phone shows", arguments: sent) func contextWithAMissingFieldIsRefused(name: String)
        async throws
    {
        var login = try Login()
        login.context[name] = nil
        #expect(await login.fault(try login.signed()) == .field(name))
    }

    @Test("Changed in what the phone shows", arguments: sent + ["display_name"]) func contextWithAChangedFieldIsRefused(
        name: String
    )
        async throws
    {
        for value: JSONValue in ["another", 3, .null, [], [:]] {
            var login = try Login()
            login.context[name] = value
            #expect(await login.fault(try login.signed()) == .field(name))
        }
    }

    @Test("Shown though it was never sent", arguments: ["service", "action", "details", "ip", "user_agent"])
    func contextWithAnAddedFieldIsRefused(name: String) async throws {
        var login = try Login()
        switch name {
        case "service": login.asked.service = nil
        case "action": login.asked.action = nil
        case "details": login.asked.details = []
        case "ip": login.asked.ip = nil
        default: login.asked.userAgent = nil
        }
        #expect(await login.fault(try login.signed()) == .field(name))
    }

    @Test func ambiguousContextIsRefused() async throws {
        var login = try Login()
        guard case .context(let why) = await login.fault(try Lie.readInTwoWays(&login)) else {
            Issue.record("believed")
            return
        }
        #expect(why.contains("appears twice"))
    }

    /// A website that chooses the number wants no relay to: not by another in the answer, not by none.
    @Test("A number of its own in place of the one that was chosen") func numberChosenByTheRelayIsRefused() async throws
    {
        var request = LoginRequest(username: "ada")
        let other = ScriptedTransport(.asked)
        request.number = "11"
        let fault = await #expect(throws: CallFault.self) { try await other.client().ask(request) }
        guard case .odd = fault else {
            Issue.record("\(String(describing: fault))")
            return
        }
        request.number = "47"
        #expect(try await ScriptedTransport(.asked).client().ask(request).number == "47")
        // Of a user who is locked the answer has none.
        let none = ScriptedTransport(
            .reply(
                201, ["login": "verified", "challenge": "c1", "expires_at": "2026-11-21T10:09:47.940Z"]))
        #expect(try await none.client().ask(request).asked.number == "47")
        // Nor is what the phone then signs believed, where it signs another.
        var login = try Login()
        login.asked.number = "11"
        #expect(await login.fault(try login.signed()) == .number)
    }

    @Test("No character of what is handed over can be changed") func receiptWithAChangedCharacterIsRefused()
        async throws
    {
        let login = try Login()
        let honest = try login.signed()
        func changes(_ text: String) -> [String] {
            let characters = Array(text.utf8)
            return characters.indices.flatMap { at in
                [UInt8(ascii: "A"), UInt8(ascii: "_"), UInt8(ascii: ".")].filter { $0 != characters[at] }.map {
                    var changed = characters
                    changed[at] = $0
                    return String(decoding: changed, as: UTF8.self)
                }
            }
        }
        for receipt in changes(honest.receipt) {
            let fault = await login.fault(
                LoginEvidence(device: honest.device, receipt: receipt, context: honest.context))
            #expect(fault != nil)
        }
        for context in changes(honest.context) {
            let fault = await login.fault(
                LoginEvidence(device: honest.device, receipt: honest.receipt, context: context))
            #expect(fault != nil)
        }
    }
}
