import JSON
import TestSupport
import Testing

/// The conversation that the original documents, as it documents it: with curl.
@Suite("The original conversation", .timeLimit(.minutes(2))) struct OriginalConversation {
    static let stores: [StoreKind] = [.file, .mariadb]

    /// A user of a website that answers for its users itself.
    private func start(_ kind: StoreKind) async throws -> (RunningRelay, Caller, token: String) {
        let relay = try await RunningRelay.start(kind)
        let shop = try await relay.website("shop", "--answers", "website", "--number", "0")
        let registered = try await shop.curl(
            "POST", "/register",
            json: #"{"username":"bob","email":"bob@example.com","phone":"+4915112345678"}"#)
        #expect(registered.status == 201)
        #expect(registered.json?.object?.names == ["token", "activation"])
        return (relay, shop, try #require(registered["token"]?.string))
    }

    @Test(arguments: stores) func goesAsItWent(_ kind: StoreKind) async throws {
        let (relay, shop, token) = try await start(kind)

        let user = try await shop.curl("GET", "/user/bob")
        #expect(user.status == 200)
        #expect(user["token"]?.string == token)
        #expect(user["email"] == "bob@example.com")
        #expect(user["phone"] == "+4915112345678")

        let nothing = try await shop.curl("POST", "/auth", json: #"{"token":"\#(token)"}"#)
        #expect(nothing.text == #"{"login":""}"#)

        let unbound = try await shop.curl("POST", "/login", json: #"{"token":"\#(token)"}"#)
        #expect(unbound.status == 201)
        #expect(unbound["login"] == "unverified")

        let bound = try await shop.curl("POST", "/verify", json: #"{"id_token":"\#(token)","dev_token":"aa01"}"#)
        #expect(bound.status == 200)
        #expect(bound.text == #"{"login":"verified"}"#)

        for (path, word) in [("/success", "success"), ("/failure", "failure")] {
            let asked = try await shop.curl(
                "POST", "/login", json: #"{"token":"\#(token)","service":"Shop","ip":"192.0.2.1"}"#)
            #expect(asked.status == 201)
            #expect(asked["login"] == "verified")
            let waiting = try await shop.curl("POST", "/auth", json: #"{"token":"\#(token)"}"#)
            #expect(waiting["login"] == "wait")
            let answered = try await shop.curl("POST", path, json: #"{"token":"\#(token)"}"#)
            #expect(answered.text == #"{"login":"\#(word)"}"#)
            let told = try await shop.curl("POST", "/auth", json: #"{"token":"\#(token)"}"#)
            #expect(told["login"]?.string == word)
            #expect(told["challenge"] == asked["challenge"])
        }
        #expect(await relay.stop().status == 0)
    }
}
