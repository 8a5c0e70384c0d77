import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

/// A malicious relay that has every key except those of the phones.
@Suite struct LyingRelayTests {
    @Test(arguments: Lie.all + Lie.ofForm) func forgedReceiptIsRefused(lie: Lie) async throws {
        var login = try Login()
        let answered = try lie.forge(&login)
        #expect(await login.fault(answered) == lie.fault)
    }

    private static let sent = [
        "website", "username", "service", "action", "details", "ip", "user_agent", "request", "number_digits",
    ]

    @Test("A field is missing", arguments: sent) func contextWithAMissingFieldIsRefused(name: String)
        async throws
    {
        var login = try Login()
        login.context[name] = nil
        #expect(await login.fault(try login.signed()) == .field(name))
    }

    @Test("A field is changed", arguments: sent + ["display_name"]) func contextWithAChangedFieldIsRefused(
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

    @Test("A field is added", arguments: ["service", "action", "details", "ip", "user_agent"])
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

    /// The relay can neither replace nor omit a number that the website chose.
    @Test("The relay replaces the website's number") func numberChosenByTheRelayIsRefused() async throws {
        var request = LoginRequest(username: "ada")
        let other = ScriptedCarrier(.asked)
        request.number = "11"
        let fault = await #expect(throws: CallFault.self) { try await other.client().ask(request) }
        guard case .odd = fault else {
            Issue.record("\(String(describing: fault))")
            return
        }
        request.number = "47"
        #expect(try await ScriptedCarrier(.asked).client().ask(request).number == "47")
        // The answer has no number if no phone can answer, so there is none to show.
        let none = ScriptedCarrier(
            .reply(
                201, ["login": "verified", "challenge": "c1", "expires_at": "2026-11-21T10:09:47.940Z"]))
        let unanswerable = try await none.client().ask(request)
        #expect(unanswerable.asked.number == "47" && unanswerable.number == nil)
        // A receipt with another number is refused, too.
        var login = try Login()
        login.asked.number = "11"
        #expect(await login.fault(try login.signed()) == .number)
    }

    @Test("Any changed character is detected") func receiptWithAChangedCharacterIsRefused()
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
