import JSON
import TestSupport
import Testing
import World

/// A user who logs in with codes. Each code is submitted at both relays at once.
final class CodeUser: Sendable {
    let name: String
    private let client: MultiRelayClient
    private let relays: [UInt16]

    private init(_ name: String, _ client: MultiRelayClient, _ relays: [UInt16]) {
        self.name = name
        self.client = client
        self.relays = relays
    }

    /// The secret of a token (RFC 4226, appendix D).
    private static let secret = "3132333435363738393031323334353637383930"

    /// Returns the codes of that token in order, from a program that is independent of the relay.
    static func shown(_ count: Int) async throws -> [String] {
        let ended = try await Child.run("oathtool", ["--hotp", "--counter=0", "--window=\(count - 1)", secret])
        guard ended.status == 0 else { throw Child.Problem(description: ended.errors) }
        return ended.output.split(separator: "\n").map(String.init)
    }

    static func withToken(_ name: String, of shop: ClusterShop, at client: MultiRelayClient) async throws -> CodeUser {
        let user = try await registered(name, of: shop, at: client)
        let body: JSONObject = ["secret": .string("hex:\(secret)")]
        let added = try await client.insist("POST", "/user/\(name)/hotp", body, key: "\(name)-hotp").reply
        try #require(added.status == 201, "\(added)")
        return user
    }

    /// - Returns: the secret of the app.
    static func withApp(
        _ name: String, of shop: ClusterShop, at client: MultiRelayClient
    ) async throws -> (user: CodeUser, secret: String) {
        let user = try await registered(name, of: shop, at: client)
        let made = try await client.insist("POST", "/user/\(name)/totp", [:], key: "\(name)-totp").reply
        let secret = try #require(made["secret"], "\(made)")
        var confirmed = false
        while !confirmed {
            let code: JSONObject = ["otp": .string(try await now(secret))]
            let reply = try await client.insist("POST", "/user/\(name)/totp/confirm", code).reply
            try #require(reply.status == 200, "\(reply)")
            // The machine may have been so slow that the code expired.
            confirmed = reply.json["confirmed"] == true
        }
        return (user, secret)
    }

    private static func registered(_ name: String, of shop: ClusterShop, at client: MultiRelayClient) async throws
        -> CodeUser
    {
        let reply = try await client.insist("POST", "/register", ["username": .string(name)], key: name).reply
        try #require(reply.status == 201, "\(reply)")
        return CodeUser(name, client, shop.cluster.relays)
    }

    /// Returns the code that an app with this secret shows, some seconds from now.
    static func now(_ secret: String, in seconds: Int64 = 0) async throws -> String {
        let moment = Timestamp(seconds: SystemTime().now().seconds + seconds).rfc3339.prefix(19)
        let shown = try await Child.run("oathtool", ["--totp", "--base32", "--now=\(moment)Z", secret])
        guard shown.status == 0 else { throw Child.Problem(description: shown.errors) }
        return String(shown.output.prefix { $0 != "\n" })
    }

    // MARK: Logging in

    func login(_ number: Int) async throws -> Login {
        let body: JSONObject = ["username": .string(name)]
        return try Login(try await client.insist("POST", "/login", body, key: "\(name)-\(number)").reply)
    }

    /// Submits a code that was already used, and expects a refusal.
    func replay(_ code: String, for login: Login) async throws {
        let body: JSONObject = ["challenge": .string(login.challenge), "otp": .string(code)]
        let result = try await client.insist("POST", "/backup", body).reply
        #expect(result.status == 200 && result["login"] == "failure" && result["reason"] == nil, "\(name): \(result)")
    }

    /// Submits the same code at both relays at once.
    ///
    /// - Returns: whether it was right.
    func handIn(_ code: String, for login: Login) async throws -> Bool {
        let body: JSONObject = ["challenge": .string(login.challenge), "otp": .string(code)]
        let answers = try await withThrowingTaskGroup(of: MultiRelayClient.FinalReply.self) { group in
            for relay in relays {
                group.addTask { [client] in try await client.insist("POST", "/backup", body, first: relay) }
            }
            return try await group.reduce(into: [MultiRelayClient.FinalReply]()) { $0.append($1) }
        }
        let successes = answers.filter { $0.reply.status == 200 && $0.reply["login"] == "success" }
        let late = answers.filter { $0.reply.status == 409 && $0.reply["code"] == "already_decided" }
        let wrong = answers.filter { $0.reply.status == 200 && $0.reply["login"] == "failure" }
        #expect(successes.count <= 1, "\(name): one code was taken twice: \(answers)")
        #expect(successes.count + late.count + wrong.count == answers.count, "\(name): \(answers)")
        guard successes.count + late.count > 0 else { return false }
        // The answer that reported the success may have been lost.
        #expect(successes.count == 1 || answers.contains { $0.unsure > 0 }, "\(name): \(answers)")
        #expect(late.allSatisfy { $0.reply["login"] == "success" }, "\(name): \(answers)")
        #expect(wrong.isEmpty, "\(name): \(answers)")
        let result = try await ClusterShop.result(of: login, at: client)
        #expect(result["login"] == "success" && result["proof"] == "code", "\(name): \(result)")
        return true
    }
}
