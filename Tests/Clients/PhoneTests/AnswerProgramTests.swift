import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing

@testable import Phone

/// The commands that answer challenges, with a scripted relay.
@Suite("twoefay phone: answers", .timeLimit(.minutes(15))) struct AnswerProgramTests {
    private let owner: Owner
    private let relay: FakeRelay

    init() throws {
        owner = try Owner()
        relay = try FakeRelay()
    }

    private func listed(_ challenge: String, digits: Int64 = 2) -> Listed {
        var listed = Listed { $0["number_digits"] = .integer(digits) }
        listed.challenge = challenge
        return listed
    }

    /// Returns the verified claims of the signed answer.
    private func claims(_ index: Int) throws -> JSONObject {
        let object = try JWS.parse(try #require(relay.asked[index].body["answer"]?.string))
        #expect(object.verify(try owner.kept().key.publicKey))
        return try #require(try JSONReader.read(object.payload).object)
    }

    @Test func approveAnswersTheOpenChallenge() async throws {
        relay.answer(200, Listed.answer([listed("c1")]))
        relay.answer(200, ["login": "success"])
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            return try await owner.phone("approve", "--challenge", "c1", "--number", "47", "--uv", "biometric")
        }
        #expect(ended.status == 0, "\(ended.errors)")
        for part in ["The Shop (shop) asks", "alice", "12.00 EUR", "Berlin, DE", "192.0.2.7", "the relay says success"]
        {
            #expect(ended.output.contains(part), "\(part)")
        }
        let claims = try claims(1)
        #expect(claims["decision"] == "approve" && claims["number"] == "47" && claims["uv"] == "biometric")
    }

    @Test(arguments: ["deny", "fraud"]) func denyAndFraudAnswerTheChallenge(word: String) async throws {
        relay.answer(200, Listed.answer([listed("c1"), listed("c2")]))
        relay.answer(200, ["login": "failure"])
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            return try await owner.phone(word, "--challenge", "c2", "--json", "--dpop")
        }
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(
            try ended.events == [
                ["device": "d1", "challenge": "c2", "decision": .string(word), "login": "failure"]
            ])
        #expect(relay.asked.allSatisfy { $0.certificate == nil && $0.fields["dpop"] != nil })
        #expect(relay.asked[1].path == "/failure")
        let claims = try claims(1)
        #expect(claims["decision"]?.string == word && claims["number"] == nil)
    }

    /// None of these commands sends an answer to the relay.
    @Test(arguments: [
        (["approve", "--challenge", "c1", "--number", "4"], Int32(2), "has 2 digits"),
        (["approve", "--challenge", "c1"], 2, "--number is missing"),
        (["approve", "--number", "47"], 2, "Name the challenge that you have seen: --challenge ID"),
        (
            ["approve", "--challenge", "c1", "--number", "47", "--uv", "face"], 2,
            "--uv must be one of none, passcode, biometric, not face"
        ),
        (["approve", "--number", "47", "--challenge", "c9"], 3, "the challenge c9 is not pending"),
        (["deny", "--device", "d9"], 3, "there is no phone d9"),
    ])
    func ambiguousAnswerIsNotSent(arguments: [String], status: Int32, message: String) async throws {
        relay.answer(200, Listed.answer([listed("c1")]))
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            return try await owner.begin(arguments + ["--keys", owner.keys]).ended()
        }
        #expect(ended.status == status && ended.errors.contains(message), "\(ended.status) \(ended.errors)")
        #expect(relay.asked.allSatisfy { $0.path == "/pending" })
    }

    @Test func ambiguousOrUnknownChallengeIsNotAnswered() async throws {
        relay.answer(200, Listed.answer([listed("c1"), listed("c2")]))
        relay.answer(200, Listed.answer([]))
        relay.answer(200, Listed.answer([Listed { $0["v"] = 2 }]))
        try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            let several = try await owner.phone("deny")
            #expect(several.status == 2 && several.errors.contains("c2 (The Shop)"), "\(several.errors)")
            let none = try await owner.phone("deny")
            #expect(none.status == 3 && none.errors.contains("no challenge is pending"))
            let newer = try await owner.phone("deny")
            #expect(newer.status == 1 && newer.errors.contains("a version that this phone does not know"))
        }
        #expect(relay.asked.map(\.path) == ["/pending", "/pending", "/pending"])
    }

    @Test func ineffectiveAnswerIsReported() async throws {
        relay.answer(200, Listed.answer([listed("c1")]))
        relay.answer(200, ["login": "failure"])
        relay.answer(200, Listed.answer([listed("c1")]))
        relay.answer(409, ["code": "already_decided", "detail": "over", "login": "success"])
        relay.answer(200, Listed.answer([listed("c1")]))
        relay.answer(429, ["code": "limited", "detail": "slowly"], fields: [.init("retry-after", "7")])
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            var ended: [Child.Ended] = []
            for _ in 0..<3 { ended.append(try await owner.phone("approve", "--challenge", "c1", "--number", "46")) }
            return ended
        }
        #expect(ended.map(\.status) == [1, 4, 5])
        #expect(ended[0].output.contains("the relay says failure"))
        #expect(ended[1].errors.contains("already_decided"))
        #expect(ended[2].errors.contains("Try again in 7 s."))
    }

    /// A copied number or a known challenge does not show that the person agrees to this content.
    @Test(arguments: [(Int64(0), []), (2, ["--number", "47"]), (0, ["--challenge", "c1"])] as [(Int64, [String])])
    func nothingIsSignedWithoutConsent(digits: Int64, arguments: [String]) async throws {
        relay.answer(200, Listed.answer([listed("c1", digits: digits)]))
        relay.answer(200, Listed.answer([listed("c1", digits: digits)]))
        relay.answer(200, ["login": "success"])
        let relay = relay
        let (no, yes) = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            var ended: [Child.Ended] = []
            for word in ["n", "y"] {
                let terminal = try Input.terminal()
                let child = try owner.begin(["approve", "--keys", owner.keys] + arguments, input: terminal.child)
                try await child.says("Approve this? [y]es, [n]o: ")
                #expect(relay.asked.allSatisfy { $0.path == "/pending" })
                terminal.write("what?\n")
                try await child.says("[n]o: Approve this? [y]es, [n]o: ")
                terminal.write("\(word)\n")
                ended.append(await child.ended())
            }
            return (ended[0], ended[1])
        }
        #expect(no.status == 1 && no.errors.contains("no answer was sent"), "\(no.errors)")
        #expect(yes.status == 0, "\(yes.errors)")
        #expect(relay.asked.map(\.path) == ["/pending", "/pending", "/success"])
        let shown = yes.output.prefix(upTo: try #require(yes.output.firstRange(of: "Approve this?")).lowerBound)
        for part in ["The Shop (shop) asks", "alice", "12.00 EUR", "192.0.2.7"] {
            #expect(shown.contains(part), "\(part)")
        }
        #expect(try claims(2)["number"]?.string == (digits == 0 ? nil : "47"))
    }

    @Test func numberOptionCountsAsConsent() async throws {
        relay.answer(200, Listed.answer([listed("c1")]))
        relay.answer(200, ["login": "success"])
        let terminal = try Input.terminal()
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            let child = try owner.begin(["approve", "--keys", owner.keys], input: terminal.child)
            try await child.says("12.00 EUR")
            try await child.says("The number that The Shop shows: ")
            terminal.write("47\n")
            return await child.ended()
        }
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try claims(1)["number"] == "47")
    }

    /// The command does not even query the relay without --challenge.
    @Test(arguments: [["approve"], ["approve", "--json", "--number", "47"]])
    func challengeIsShownBeforeApproval(arguments: [String]) async throws {
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            return try await owner.begin(arguments + ["--keys", owner.keys]).ended()
        }
        #expect(ended.status == 2 && ended.errors.contains("--challenge is missing"), "\(ended.errors)")
        #expect(relay.asked.isEmpty)
    }

    @Test func watchRunsUnattendedWithAuto() async throws {
        relay.answer(503, ["code": "unavailable"])
        var newer = Listed { $0["v"] = 2 }
        newer.challenge = "c0"
        relay.answer(200, Listed.answer([newer]))
        relay.answer(200, Listed.answer([listed("c1", digits: 0)]))
        let relay = relay
        // The relay must answer /pending and /success in any order.
        for _ in 0..<200 {
            relay.answer { asked in
                asked.path == "/pending" ? Listed.answer([listed("c1", digits: 0)]) : ["login": "success"]
            }
        }
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            return try await owner.phone("watch", "--auto", "approve", "--once", "--json")
        }
        #expect(ended.status == 0, "\(ended.errors)")
        let events = try ended.events
        #expect(
            events.map { $0["event"]?.string } == ["watching", "trouble", "refused", "request", "answered", "ended"])
        #expect(events[3]["context"]?.object == listed("c1", digits: 0).context)
        #expect(relay.asked[0].fields["prefer"] == "wait=60")
    }

    @Test func numbersAreReadFromStandardInput() async throws {
        relay.answer(200, Listed.answer([listed("c1")]))
        let relay = relay
        for _ in 0..<200 {
            relay.answer { asked in
                asked.path == "/pending" ? Listed.answer([listed("c1")]) : ["login": "failure"]
            }
        }
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            return try await owner.phone("watch", "--auto", "approve", "--once", "--json", input: "46\n")
        }
        // The relay refused the number.
        #expect(ended.status == 1, "\(ended.errors)")
        let answered = try #require(relay.asked.firstIndex { $0.path == "/success" })
        #expect(try claims(answered)["number"] == "46")
    }

    @Test func watchPromptsAtATerminal() async throws {
        let relay = relay
        for _ in 0..<200 {
            relay.answer { asked in
                asked.path == "/pending" ? Listed.answer([listed("c1")]) : ["login": "success"]
            }
        }
        let terminal = try Input.terminal()
        let ended = try await relay.run { _, address in
            try owner.save(try relay.bound(address))
            let child = try owner.begin(["watch", "--once", "--keys", owner.keys], input: terminal.child)
            try await child.says("[a]pprove, [d]eny, [f]raud (this was not me), [i]gnore: ")
            terminal.write("a\n")
            try await child.says("The number that The Shop shows: ")
            terminal.write("4x\n")
            try await child.says("No: the number that the website shows has 2 digits.\n[a]pprove")
            terminal.write("a\n")
            try await child.says("digits.\n[a]pprove, [d]eny, [f]raud (this was not me), [i]gnore: The number")
            terminal.write("47\n")
            return await child.ended()
        }
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains("Approved: the relay says success."))
        let answered = try #require(relay.asked.firstIndex { $0.path == "/success" })
        #expect(try claims(answered)["number"] == "47")
    }

    @Test func watchRefusesToRunWithoutInput() async throws {
        let ended = try await owner.phone("watch")
        #expect(ended.status == 2 && ended.errors.contains("--auto is missing"))
        #expect(try await owner.phone("watch", "--auto", "sometimes").status == 2)
        #expect(try await owner.phone("watch", "--auto", "deny").status == 3)
    }
}
