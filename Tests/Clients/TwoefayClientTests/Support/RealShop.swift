import Bytes
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// A website with a real relay and the real phone program for its users.
struct RealShop {
    let relay: RunningRelay
    let client: RelayClient
    let origin: String

    init(_ relay: RunningRelay, _ policies: [String] = [], retries: RetryPolicy = RetryPolicy()) async throws {
        self.relay = relay
        origin = relay.origin
        try await relay.tool(
            ["website", "add", "shop", "--display-name", "The Shop", "--out", relay.directory.path] + policies)
        client = RelayClient(try Self.carrier(to: relay, as: relay), retries: retries)
    }

    /// Opens another connection of the same website.
    func carrier() throws -> HTTP2Carrier { try Self.carrier(to: relay, as: relay) }

    /// - Parameter home: the relay that issued the website's certificate.
    static func carrier(to relay: RunningRelay, as home: RunningRelay) throws -> HTTP2Carrier {
        try HTTP2Carrier(
            origin: relay.origin, authority: try TextFile.bytes(relay.file("ca.pem")),
            certificate: try TextFile.bytes(home.directory("shop.pem")),
            key: Secret(try TextFile.bytes(home.directory("shop.key"))))
    }

    /// Returns the directory of the user's phone.
    func keys(_ username: String) -> String { relay.directory("phone-\(username)") }

    func bind(_ username: String, _ uri: String) async throws {
        try await phone(["enrol", uri, "--name", "\(username)'s"], of: username)
    }

    func answer(_ word: String, _ login: OpenLogin) async throws {
        let number = word == "approve" ? login.number : nil
        try await answer(word, login.challenge, number, of: login.asked.username)
    }

    func approve(_ needed: Problem.NeededApproval, of username: String) async throws {
        try await answer("approve", needed.challenge, needed.number, of: username)
    }

    private func answer(_ word: String, _ challenge: String, _ number: String?, of username: String) async throws {
        try await phone(
            [word, "--challenge", challenge] + (number.map { ["--number", $0] } ?? []), of: username)
    }

    /// Reports the state of the user's phone.
    func report(_ arguments: [String], of username: String) async throws {
        try await phone(["status"] + arguments, of: username)
    }

    /// Runs the phone program of the user, which must succeed. Returns what it printed, if that is a
    /// JSON object.
    @discardableResult func phone(_ arguments: [String], of username: String) async throws -> JSONObject {
        let ended = try await Child.run(
            try BuiltProgram.twoefay.path, ["phone"] + arguments + ["--keys", keys(username)])
        guard ended.status == 0 else { throw Child.Problem(description: ended.errors) }
        return (try? JSONReader.read(Array(ended.output.utf8)))?.object ?? [:]
    }
}
