import JSON
import TestSupport
import Testing
import World

/// A login that a website has started, to be answered by a code.
struct CodeLogin: Sendable {
    let challenge: String
    let asked: CurlCaller.Answer
    private let shop: APIClient

    init(_ shop: APIClient, _ username: String, _ more: JSONObject = [:], fields: [String: String] = [:]) async throws {
        var body: JSONObject = ["username": .string(username)]
        for member in more.members { body.set(member.name, member.value) }
        asked = try await shop.curl("POST", "/login", body, fields: fields)
        #expect(asked.status == 201, "\(asked)")
        challenge = try #require(asked["challenge"]?.string)
        self.shop = shop
    }

    /// The first factor.
    var factor: String? { asked["factor"]?.string }

    func result() async throws -> CurlCaller.Answer {
        try await shop.curl("POST", "/auth", ["challenge": .string(challenge)])
    }

    func begin(_ factor: String, by other: APIClient? = nil) async throws -> CurlCaller.Answer {
        try await (other ?? shop).curl("POST", "/challenge/\(challenge)/factor", ["factor": .string(factor)])
    }

    func handIn(_ code: String) async throws -> CurlCaller.Answer {
        try await shop.curl("POST", "/backup", ["challenge": .string(challenge), "otp": .string(code)])
    }

    /// Submits a right code, and checks the factor and the assurance that the website gets.
    func succeeds(
        by factor: String, worth assurance: String, _ code: String, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let handedIn = try await handIn(code)
        #expect(handedIn.status == 200, "\(handedIn)", sourceLocation: location)
        let result = try await result()
        for answer in [handedIn, result] {
            #expect(answer["login"] == "success", "\(answer)", sourceLocation: location)
            #expect(answer["factor"]?.string == factor && answer["proof"] == "code", sourceLocation: location)
            #expect(answer["assurance"]?.string == assurance, "\(answer)", sourceLocation: location)
        }
        #expect(result.steps.hasSuffix("\(factor) answered"), "\(result.steps)", sourceLocation: location)
        #expect(result.stepTimes == result.stepTimes.sorted(), sourceLocation: location)
    }
}

extension CurlCaller.Answer {
    private var stepObjects: [JSONObject] { self["steps"]?.array?.compactMap(\.object) ?? [] }

    /// The steps as in "push refused, mail answered", with a reason in brackets.
    var steps: String {
        stepObjects.map { step in
            let words = ["factor", "state"].map { step[$0]?.string ?? "?" }.joined(separator: " ")
            return words + (step["reason"]?.string.map { " (\($0))" } ?? "")
        }.joined(separator: ", ")
    }

    /// The times of the steps that can be parsed.
    var stepTimes: [Timestamp] { stepObjects.compactMap { $0["at"]?.string.flatMap { Timestamp(rfc3339: $0) } } }
}

extension APIClient {
    /// Registers a user without a phone.
    @discardableResult func register(_ username: String, with more: JSONObject) async throws -> (
        token: String, code: String
    ) {
        var body: JSONObject = ["username": .string(username)]
        for member in more.members { body.set(member.name, member.value) }
        let answer = try await curl("POST", "/register", body)
        #expect(answer.status == 201, "\(answer)")
        let code = answer["activation"]?.object?["code"]?.string
        return (try #require(answer["token"]?.string), try #require(code))
    }
}

extension String {
    /// The line of a mail that holds exactly six digits.
    var codeOfAMail: String? {
        split(separator: "\n").first { $0.utf8.count == 6 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
            .map(String.init)
    }

    /// The six digits at the start of a text message.
    var codeOfAText: String? {
        let digits = prefix { $0.isASCII && $0.isNumber }
        return digits.utf8.count == 6 ? String(digits) : nil
    }
}
