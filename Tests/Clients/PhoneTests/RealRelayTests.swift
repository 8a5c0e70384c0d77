import Glibc
import JSON
import TestSupport
import Testing

/// The real programs `twoefay phone` and twoefayd, from the activation URI to the website's result.
@Suite("twoefay phone with a real relay", .timeLimit(.minutes(15))) struct RealRelayTests {
    private let owner: Owner

    init() throws { owner = try Owner() }

    private struct Asked {
        let challenge: String
        let number: String
    }

    private func ask(_ site: CurlCaller, _ user: String, details: [JSONValue] = []) async throws -> Asked {
        let asked = try await site.say(
            "POST", "/login",
            [
                "username": .string(user), "service": "members", "ip": "192.0.2.7", "action": "pay",
                "details": .array(details),
            ])
        try #require(asked.status == 201, "\(asked)")
        return Asked(
            challenge: try #require(asked["challenge"]?.string), number: try #require(asked["number"]?.string))
    }

    private func result(_ site: CurlCaller, _ asked: Asked) async throws -> [String?] {
        let result = try await site.say(
            "POST", "/auth", ["challenge": .string(asked.challenge)], fields: ["prefer": "wait=60"])
        return [result["login"]?.string, result["reason"]?.string, result["proof"]?.string]
    }

    /// Registers a user and enrols the user's phone.
    private func enrol(_ site: CurlCaller, _ user: String, _ more: String...) async throws -> JSONObject {
        let registered = try await site.say("POST", "/register", ["username": .string(user)])
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let ended = try await owner.begin(["enrol", uri, "--json", "--keys", owner.keys] + more).ended()
        try #require(ended.status == 0, "\(ended.errors)")
        return try #require(try ended.events.last)
    }

    private func other(_ number: String) -> String { number == "12" ? "13" : "12" }

    @Test(arguments: [[], ["--dpop"]]) func phoneAnswersChallengesOneByOne(identity: [String]) async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop", "--display-name", "The Shop")
        let bound = try await enrol(shop, "alice", "--name", "Alice's")
        let devices = try await shop.say("GET", "/user/alice")["devices"]?.array
        let device = try #require(devices?.first?.object)
        #expect(device["device"] == bound["device"] && device["thumbprint"] == bound["thumbprint"])
        #expect(device["name"] == "Alice's" && devices?.count == 1)

        func phone(_ arguments: String...) async throws -> Child.Ended {
            try await owner.begin(arguments + identity + ["--keys", owner.keys]).ended()
        }
        #expect(try await phone("deny").status == 3)

        let approved = try await ask(shop, "alice", details: [["label": "amount", "value": "12.00 EUR"]])
        let yes = try await phone(
            "approve", "--challenge", approved.challenge, "--number", approved.number, "--uv", "passcode")
        #expect(yes.status == 0, "\(yes.errors)")
        for line in ["The Shop (shop) asks", "alice", "members", "pay", "12.00 EUR", "192.0.2.7"] {
            #expect(yes.output.contains(line), "\(yes.output)")
        }
        #expect(try await result(shop, approved) == ["success", nil, "signed"])

        let denied = try await ask(shop, "alice")
        #expect(try await phone("deny", "--challenge", denied.challenge).status == 0)
        #expect(try await result(shop, denied) == ["failure", "denied", "signed"])

        let mistaken = try await ask(shop, "alice")
        let wrong = try await phone(
            "approve", "--challenge", mistaken.challenge, "--number", other(mistaken.number), "--json")
        #expect(wrong.status == 1 && wrong.output.contains("\"login\":\"failure\""), "\(wrong.errors)")
        #expect(try await result(shop, mistaken) == ["failure", "wrong_number", "signed"])

        let strange = try await ask(shop, "alice")
        #expect(try await phone("fraud").status == 0)
        #expect(try await result(shop, strange) == ["failure", "fraud", "signed"])
        // A frozen user gets no challenges.
        _ = try await shop.say("POST", "/login", ["username": "alice"])
        #expect(try await phone("deny").status == 3)
        let stopped = await relay.stop()
        #expect(stopped.status == 0, "\(stopped.errors)")
    }

    /// The variables have the precedence that POSIX gives them.
    @Test func refusalsAreInTheLanguageOfTheLocale() async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop", "--min-uv", "passcode", "--number", "0")
        _ = try await enrol(shop, "alice")
        let asked = try await shop.say("POST", "/login", ["username": "alice"])
        let challenge = try #require(asked["challenge"]?.string)
        func refusal(_ locale: [String: String]) async throws -> String {
            let unset = ["LC_ALL": "", "LC_MESSAGES": "", "LANG": ""]
            let ended = try await owner.begin(
                ["approve", "--json", "--challenge", challenge, "--keys", owner.keys],
                locale: unset.merging(locale) { $1 }
            ).ended()
            #expect(ended.status == 1, "\(ended.errors)")
            return ended.errors + ended.output
        }
        let german = [
            ["LANG": "de_AT.UTF-8"], ["LANG": "C", "LC_MESSAGES": "de"],
            ["LC_MESSAGES": "en_GB", "LC_ALL": "de_DE@euro"],
        ]
        for locale in german {
            let text = try await refusal(locale)
            #expect(
                text.contains("Die Website verlangt eine Benutzerverifizierung durch passcode"), "\(locale): \(text)")
        }
        for locale in [[:], ["LANG": "C.UTF-8"], ["LANG": "de_DE", "LC_ALL": "POSIX"], ["LANG": "not a locale"]] {
            let text = try await refusal(locale)
            #expect(text.contains("The website requires user verification by passcode"), "\(locale): \(text)")
        }
    }

    /// The relay holds the request, and each login completes it. No push service is configured.
    @Test(arguments: [[], ["--dpop"]]) func watchReceivesEachChallenge(identity: [String]) async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop")
        _ = try await enrol(shop, "alice")
        let pipe = try Input.pipe()
        let watch = try owner.begin(
            ["watch", "--auto", "approve", "--json", "--keys", owner.keys] + identity, input: pipe.child)
        _ = try await watch.line(.output, with: #""event":"watching""#)
        for round in 1...3 {
            let asked = try await ask(shop, "alice")
            let shown = try await watch.line(.output, with: #""event":"request""#, number: round)
            #expect(shown.contains(asked.challenge) && shown.contains("192.0.2.7"))
            pipe.write(asked.number + "\n")
            #expect(try await result(shop, asked) == ["success", nil, "signed"])
            _ = try await watch.line(.output, with: #""event":"answered""#, number: round)
        }
        // A challenge that the website cancels disappears from the screen.
        let cancelled = try await ask(shop, "alice")
        _ = try await watch.line(.output, with: #""event":"request""#, number: 4)
        #expect(try await shop.say("DELETE", "/challenge/\(cancelled.challenge)").status == 204)
        let over = try await watch.line(.output, with: #""event":"over""#)
        #expect(over.contains(cancelled.challenge))
        watch.signal(SIGINT)
        let ended = await watch.ended()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains(#""event":"ended","answered":3"#), "\(ended.output)")
    }

    /// Two websites open challenges for the same person at once.
    @Test func answerNamesItsChallenge() async throws {
        let relay = try await RunningRelay.start()
        let (shop, bank) = (try await relay.website("shop"), try await relay.website("bank"))
        let first = try await enrol(shop, "alice")
        let second = try await enrol(bank, "alice.bank")
        #expect(first["device"] != second["device"] && owner.names.count == 2)
        let (atShop, atBank) = (try await ask(shop, "alice"), try await ask(bank, "alice.bank"))

        let unclear = try await owner.phone("deny")
        #expect(unclear.status == 2, "\(unclear.output)")
        #expect(unclear.errors.contains(atShop.challenge) && unclear.errors.contains(atBank.challenge))
        let named = try await owner.phone(
            "approve", "--number", atShop.number, "--challenge", atShop.challenge)
        #expect(named.status == 0, "\(named.errors)")
        #expect(try await result(shop, atShop) == ["success", nil, "signed"])
        let rest = try await owner.phone("deny", "--device", "bank")
        #expect(rest.status == 0, "\(rest.errors)")
        #expect(try await result(bank, atBank) == ["failure", "denied", "signed"])

        // One `watch` serves both websites.
        let watch = try owner.begin(["watch", "--auto", "deny", "--json", "--keys", owner.keys])
        _ = try await watch.line(.output, with: #""event":"watching""#)
        let (again, too) = (try await ask(shop, "alice"), try await ask(bank, "alice.bank"))
        #expect(try await result(shop, again) == ["failure", "denied", "signed"])
        #expect(try await result(bank, too) == ["failure", "denied", "signed"])
        watch.signal(SIGINT)
        #expect(await watch.ended().status == 0)
    }

    @Test func usedCodeAndRevocationAreReported() async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop")
        let registered = try await shop.say("POST", "/register", ["username": "alice"])
        let uri = try #require(registered["activation"]?.object?["uri"]?.string)
        #expect(try await owner.phone("enrol", uri).status == 0)
        // Another phone tries the same code.
        let thief = try Owner()
        let stolen = try await thief.phone("enrol", uri)
        #expect(stolen.status == 1 && stolen.errors.contains("ask the website for a new activation"))
        #expect(thief.names == [])

        #expect(try await shop.say("DELETE", "/user/alice").status == 204)
        let gone = try await owner.phone("watch", "--auto", "deny")
        #expect(gone.status == 1 && gone.errors.contains("unbind --forget"), "\(gone.errors)")
    }
}

extension CurlCaller {
    fileprivate func say(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String: String] = [:]
    ) async throws -> Answer {
        try await curl(method, path, json: body.map { JSONWriter.text(.object($0)) }, fields: fields)
    }
}
