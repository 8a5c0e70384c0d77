import Bytes
import JSON
import Testing
import TwoefayClient
import Webhooks
import World

/// Runs a case, and keeps the call, its outcome and the store afterwards.
struct CaseRun {
    private let one: ConformanceCase
    private let carrier: CaseRelay
    private let store = MemoryStore()

    init(_ one: ConformanceCase) {
        self.one = one
        carrier = CaseRelay(one)
    }

    /// Runs the case and compares its outcome with the expected one.
    func compare() async throws {
        var outcome: JSONObject
        do {
            outcome = try await call()
        } catch let error as any TwoefayError {
            outcome = Self.failure(error)
        }
        if one.call == "unbind" { try await addStore(to: &outcome) }
        for (name, tokens) in try others() { try await requireAsBefore(name, tokens) }
        for member in one.expected.members {
            let found = member.name == "requests" ? carrier.requests : outcome[member.name]
            #expect(
                Self.matches(member.value, found), "\(one.name): \(member.name) is \(found ?? .null): \(outcome)")
        }
    }

    // MARK: The website

    private func relay() throws -> TwoefayRelay {
        var rules = Requirements()
        rules.displayName = one.website["display_name"]?.string
        rules.leastUserVerification = try #require(
            UserVerification(rawValue: one.website["least_user_verification"]?.string ?? ""))
        rules.longestVerificationAge = one.website["longest_verification_age"]?.integer
        rules.leastDigits = Int(try #require(one.website["least_digits"]?.integer))
        rules.allowUnpinned = one.website["allow_unpinned"] == true
        rules.acceptCodes = one.website["accept_codes"] == true
        guard let phones = AcceptedPhones(rawValue: one.website["phones"]?.string ?? "any") else {
            throw CallFault.unable("the compiler refuses another word")
        }
        rules.phones = phones
        rules.appOrigin = one.website["app_origin"]?.string
        rules.loginOrigins = one.website["login_origins"]?.array?.compactMap(\.string) ?? []
        let chooses = ["register", "enrolment"].contains(one.call)
        return try TwoefayRelay(
            carrier, origin: try #require(one.website["origin"]?.string),
            website: try #require(one.website["name"]?.string), store: store, requirements: rules, time: carrier,
            randomness: CaseRandomness(k: chooses ? try secrets(one.given).first : nil))
    }

    private func given(_ name: String) throws -> String { ConformanceCase.text(try #require(one.given[name]?.string)) }

    /// Returns the secrets `k` of a user: a list or one text.
    private func secrets(_ user: JSONObject) throws -> [[UInt8]] {
        let texts = user["k"]?.string.map { [$0] } ?? user["k"]?.array?.compactMap(\.string) ?? []
        return try texts.map { try #require(Base64URL.decode($0)) }
    }

    private func keep(_ username: String, _ user: JSONObject) async throws {
        for member in user["pinned"]?.object?.members ?? [] {
            let jwk = String(decoding: JSONWriter.write(member.value.object ?? [:]), as: UTF8.self)
            let phone = try #require(PinnedPhone(device: member.name, jwk: jwk))
            await store.addSecret([1], of: username, at: one.clock)
            #expect(await store.pin(phone, of: username, with: [1]))
        }
        if let token = user["token"]?.string { await store.addUser(username, token: token) }
        for k in try secrets(user) { await store.addSecret(k, of: username, at: one.clock) }
    }

    private func keepAll(_ username: String) async throws {
        for (name, user) in try others() { try await keep(name, user) }
        var user = one.given
        if ["unbind", "register", "enrolment"].contains(one.call) { user.set("k", nil) }
        try await keep(username, user)
    }

    private func others() throws -> [(String, JSONObject)] {
        try (one.given["others"]?.object?.members ?? []).map {
            (ConformanceCase.text($0.name), try #require($0.value.object))
        }
    }

    private func requireAsBefore(_ name: String, _ user: JSONObject) async throws {
        #expect(Self.matches(user["pinned"] ?? [:], await pinned(name)), "\(one.name): another user has changed")
        #expect(await store.secrets(of: name, at: one.clock).count == (try secrets(user).count), "\(one.name)")
    }

    private func pinned(_ username: String) async -> JSONValue {
        var pinned = JSONObject()
        for phone in await store.pins(of: username) {
            pinned[phone.device] = try? JSONReader.read(Array(phone.jwk.utf8))
        }
        return .object(pinned)
    }

    private func addStore(to outcome: inout JSONObject) async throws {
        let username = try given("username")
        outcome["pinned"] = await pinned(username)
        outcome["enrolled"] = .bool(try await relay().isEnrolled(username))
    }

    // MARK: Calls

    private func call() async throws -> JSONObject {
        switch one.call {
        case "decide": return try await decide { try await $0.wait(for: $1, within: .zero) }
        case "enter":
            let code = try given("code")
            return try await decide { try await $0.enter(code, for: $1) }
        case "confirm": return try await confirm()
        case "ask": return try await ask()
        case "register": return try await enrolled { try await $0.register($1) }
        case "enrolment":
            let approval = one.given["approval"]?.string
            return try await enrolled { try await $0.enrolment(of: $1, approval: approval) }
        case "unbind":
            let username = try given("username")
            try await keepAll(username)
            try await relay().unbind(try given("device"), of: username)
            return ["outcome": "done"]
        case "factors":
            let kinds = try await relay().factors(of: try given("username")).map { JSONValue.string($0.kind.rawValue) }
            return ["outcome": "factors", "kinds": .array(kinds)]
        case "webhook": return try webhook()
        default:
            Issue.record("\(one.name): the call is unknown")
            return [:]
        }
    }

    private func decide(
        _ call: (TwoefayRelay, RecordedLogin) async throws -> Decision
    ) async throws -> JSONObject {
        let json = try #require(one.given["login"]?.object)
        let login = try #require(
            RecordedLogin(text: String(decoding: JSONWriter.write(json), as: UTF8.self)), "\(one.name)")
        try await keepAll(login.username)
        let isOpen = one.given["open"]?.bool ?? false
        if isOpen { await store.open(login.asked.request, at: login.asked.askedAt) }
        let result: Result<Decision, any Error>
        do {
            result = .success(try await call(try relay(), login))
        } catch {
            result = .failure(error)
        }
        // A login lets in once: the request is spent exactly if the decision is an approval.
        let isApproved = (try? result.get().isApproved) ?? false
        #expect(await store.spend(login.asked.request) == (isOpen && !isApproved), "\(one.name): spent or not")
        let decision = try result.get()
        var outcome: JSONObject = ["outcome": .string(decision.state.rawValue)]
        outcome.set("reason", decision.reason.map { .string($0.rawValue) })
        if decision.isApproved {
            outcome.set("device", decision.device.map { .string($0) })
            outcome.set("proof", decision.proof.map { .string($0.rawValue) })
            outcome.set("user_verification", decision.userVerification.map { .string($0.rawValue) })
            outcome.set("assurance", decision.assurance.map { .string($0.rawValue) })
        }
        return outcome
    }

    private func confirm() async throws -> JSONObject {
        let username = try given("username")
        try await keepAll(username)
        _ = try await relay().confirm(username)
        return ["outcome": "pinned", "pinned": await pinned(username)]
    }

    private func ask() async throws -> JSONObject {
        let text = { (name: String) -> String? in one.given[name]?.string.map(ConformanceCase.text) }
        let login = try await relay().ask(
            try given("username"), ip: text("ip"), userAgent: text("user_agent"), number: text("number"))
        var sent = try #require(carrier.calls.last?.body)
        #expect(sent["request"]?.string == login.asked.request && login.asked.request.count == 32)
        #expect(sent["ip"]?.string == login.asked.ip && sent["user_agent"]?.string == login.asked.userAgent)
        #expect(RecordedLogin(text: login.text) == login)
        sent.set("request", nil)
        var outcome: JSONObject = ["outcome": "asked", "sends": .object(sent)]
        outcome.set("number", login.number.map { .string($0) })
        return outcome
    }

    private func enrolled(_ call: (TwoefayRelay, String) async throws -> Enrolment) async throws -> JSONObject {
        let username = try given("username")
        try await keepAll(username)
        let made: Enrolment
        do {
            made = try await call(try relay(), username)
        } catch {
            #expect(await store.secrets(of: username, at: one.clock).isEmpty, "\(one.name): k was kept")
            throw error
        }
        #expect(await store.secrets(of: username, at: one.clock).isEmpty == (made.uri == nil), "\(one.name): k")
        for k in try secrets(one.given).map({ Base64URL.encode($0) }) {
            #expect(carrier.calls.allSatisfy { !String(decoding: $0.bytes, as: UTF8.self).contains(k) })
        }
        var outcome: JSONObject = ["outcome": "enrolment"]
        outcome.set("uri", made.uri.map { .string($0) })
        outcome.set("sent_to", made.sentTo.map { .string($0) })
        outcome.set("awaits", made.awaits.map { .string($0.rawValue) })
        return outcome
    }

    private func webhook() throws -> JSONObject {
        let inbox = try WebhookInbox(
            secrets: one.given["secrets"]?.array?.compactMap(\.string) ?? [], store: store, time: carrier)
        // A case may have a field twice, in two cases of letters.
        var fields: [String: String] = [:]
        for member in one.given["headers"]?.object?.members ?? [] {
            fields[member.name.lowercased()] = member.value.string
        }
        let event = try inbox.verify(fields.map { (name: $0.key, value: $0.value) }, Array(try given("body").utf8))
        return ["outcome": "event", "type": .string(event.type), "id": .string(event.id)]
    }

    // MARK: Outcomes

    private static func failure(_ error: any TwoefayError) -> JSONObject {
        var refused: JSONObject = ["outcome": "refused", "error": .string(error.word)]
        switch error {
        case let fault as ReceiptFault:
            refused["reason"] = .string(fault.reason)
            if case .field(let name) = fault { refused["field"] = .string(name) }
            return refused
        case let fault as BindingFault: refused["reason"] = .string(fault.reason)
        case let fault as CallFault: return failure(fault)
        case let fault as WebhookFault: refused["reason"] = .string(fault.reason)
        default: break
        }
        return refused
    }

    private static func failure(_ fault: CallFault) -> JSONObject {
        var failed: JSONObject = ["outcome": "error", "error": .string(fault.word)]
        if case .unable = fault { failed["outcome"] = "unusable" }
        guard let problem = fault.problem else { return failed }
        failed["code"] = .string(problem.code.rawValue)
        failed.set("retry_after", problem.retryAfter.map { .integer($0.components.seconds) })
        failed.set("challenge", problem.approval.map { .string($0.challenge) })
        failed.set("number", problem.approval?.number.map { .string($0) })
        return failed
    }

    /// Whether two values have the same bytes. `{2 digits}` stands for a number that the client chose. Null
    /// and an empty text stand for an absent value.
    private static func matches(_ expected: JSONValue, _ found: JSONValue?) -> Bool {
        switch (expected, found) {
        case (.null, nil), (.null, .null), (.string(""), nil): return true
        case (.object(let expected), .object(let found)):
            return expected.count == found.count && expected.members.allSatisfy { matches($0.value, found[$0.name]) }
        case (.array(let expected), .array(let found)):
            return expected.count == found.count && zip(expected, found).allSatisfy { matches($0, $1) }
        case (.string(let expected), .string(let found)):
            if let digits = ["{2 digits}": 2, "{6 digits}": 6][expected] {
                return found.utf8.count == digits && found.utf8.allSatisfy { (0x30...0x39).contains($0) }
            }
            return expected.utf8.elementsEqual(found.utf8)
        default: return expected == found
        }
    }
}
