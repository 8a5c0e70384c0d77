import Bytes
import Crypto
import Glibc
import JSON
import Testing
import TwoefayClient

/// The code of docs/websites/receipts.md, which has to detect the same forgeries as TwoefayClient.
@Suite(.timeLimit(.minutes(15))) struct ReceiptsPageTests {
    @Test func receiptsPagePythonCodeVerifies() async throws {
        try await PageCode.python().agrees(with: try Self.receipts() + Self.bindings())
    }

    @Test(.enabled(if: PageCode.hasNode, "there is no Node with jose here")) func receiptsPageNodeCodeVerifies()
        async throws
    {
        try await PageCode.node().agrees(with: try Self.receipts() + Self.bindings())
    }

    @Test(.enabled(if: PageCode.hasPHP, "there is no PHP here")) func receiptsPagePHPCodeVerifies() async throws {
        try await PageCode.php().agrees(with: try Self.receipts() + Self.bindings())
    }

    private static func receipts() throws -> [PageCode.Case] {
        let honest = try Login()
        var cases = [
            receipt("honest", honest, try honest.signed()),
            receipt("the same once more", honest, try honest.signed(), isHonest: false, again: true),
        ]
        var bare = try Login()
        for name in ["service", "action", "details", "ip", "place", "user_agent"] { bare.context[name] = nil }
        bare.asked = LoginRecord(
            challenge: bare.asked.challenge, username: "ada", request: "r-7f3k", number: bare.asked.number,
            askedAt: bare.asked.askedAt)
        cases.append(receipt("bare", bare, try bare.signed()))
        var awkward = try Login()
        awkward.asked.service = "a/b \"c\" \\ \u{7f}\u{2028}é😀"
        awkward.context["service"] = .string(awkward.asked.service ?? "")
        cases.append(receipt("characters that some escape", awkward, try awkward.signed()))

        for lie in Lie.all + Lie.ofForm {
            var login = try Login()
            let answered = try lie.forge(&login)
            cases.append(receipt(lie.testDescription, login, answered, isHonest: false))
        }
        var ambiguous = try Login()
        let answered = try Lie.readInTwoWays(&ambiguous)
        cases.append(receipt("a context that reads in two ways", ambiguous, answered, isHonest: false))
        for (name, value) in [
            ("login", "failure"), ("login", "wait"), ("proof", "code"), ("proof", "certificate"),
            ("challenge", "another"),
        ] {
            var altered = receipt("\(name) \(value)", honest, try honest.signed(), isHonest: false)
            var answer = altered.call["answer"]?.object ?? [:]
            answer[name] = .string(value)
            altered = PageCode.Case(
                name: altered.name, isHonest: false,
                call: JSONObject(
                    altered.call.members.map { ($0.name, $0.name == "answer" ? .object(answer) : $0.value) }))
            cases.append(altered)
        }
        return cases
    }

    private static func receipt(
        _ name: String, _ login: Login, _ answered: LoginEvidence, isHonest: Bool = true, again: Bool = false
    ) -> PageCode.Case {
        let asked = login.asked
        var kept: JSONObject = ["challenge": .string(asked.challenge), "sent": .object(asked.body)]
        // The page uses the system clock. A receipt of exactly ten minutes is therefore one minute
        // younger here.
        kept.set("asked_at", .integer(Int64(time(nil)) - (login.now - login.asked.askedAt <= 600 ? 540 : 601)))
        kept.set("number", asked.number.map { .string($0) })
        return PageCode.Case(
            name: name, isHonest: isHonest,
            call: [
                "answer": [
                    "login": "success", "proof": "signed", "device": .string(answered.device),
                    "receipt": .string(answered.receipt), "context": .string(answered.context),
                    "challenge": .string(asked.challenge),
                ],
                "asked": .object(kept), "again": .bool(again),
                "phones": .object(JSONObject([(login.device, .object(login.key.publicKey.jwk))])),
            ])
    }

    private static func bindings() throws -> [PageCode.Case] {
        let honest = try Binding()
        let own = try P256PrivateKey.generate()
        var cases = [binding("honest", honest, isHonest: true)]
        func lie(_ name: String, _ change: (inout Binding) -> Void) {
            var binding = honest
            change(&binding)
            cases.append(self.binding(name, binding, isHonest: false))
        }
        lie("the relay's own key beside the true binding") { $0.reported = own.publicKey }
        lie("the relay's own key under a k of its own") {
            $0.reported = own.publicKey
            $0.claims["jwk"] = .object(own.publicKey.jwk)
            $0.usedK = Secret([UInt8](repeating: 7, count: 32))
        }
        lie("another user") { $0.claims["id_token"] = "another" }
        lie("another website") { $0.claims["aud"] = .string("\(Login.origin)#bank") }
        lie("another type") { $0.type = "twoefay-enrol+jwt" }
        lie("no type") { $0.type = nil }
        lie("another version") { $0.claims["v"] = 2 }
        lie("a short k") {
            $0.k = Secret([1])
            $0.usedK = $0.k
        }
        return cases
    }

    private static func binding(_ name: String, _ binding: Binding, isHonest: Bool) -> PageCode.Case {
        PageCode.Case(
            name: "binding: \(name)", isHonest: isHonest,
            call: [
                "device": .object(binding.device), "token": .string(Binding.token),
                "k": .string(Hex.encode(binding.k.reveal())), "key": .object(binding.key.publicKey.jwk),
            ])
    }
}
