import HTTP
import JSON
import TestSupport
import Testing
import World

/// `twoefay phone code` with a real relay: a login without a connection of the phone.
@Suite(.timeLimit(.minutes(15))) struct CodeProgramTests {
    private func json(_ ended: Child.Ended) throws -> JSONObject {
        try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
    }

    @Test(arguments: [StoreKind.file, .mariadb], [[], ["--dpop"]])
    func codeOfThePhoneIsAccepted(kind: StoreKind, identity: [String]) async throws {
        let relay = try await RunningRelay.start(kind)
        let (shop, owner) = try await relay.enrolled()
        let off = try await owner.phone("code")
        #expect(off.status == 1 && off.errors.contains("phone-codes is off"), "\(off.errors)")
        let edited = try await relay.operate("website", "edit", "shop", "--phone-codes", "again")
        #expect(edited.status == 0, "\(edited.errors)")

        let fetched = try json(
            try await owner.begin(["code", "--json"] + identity + ["--keys", owner.keys]).ended())
        #expect(fetched["fetched"] == true, "\(fetched)")
        let user = try await shop.curl("GET", "/user/alice")
        let factor = try #require(user["factors"]?.array?.compactMap(\.object).first { $0["kind"] == "totp" })
        let device = try #require(user["devices"]?.array?.first?.object)
        #expect(factor["device"] == device["device"] && factor["state"] == "active", "\(factor)")

        // The next one needs no connection, and is the same code or the next one.
        let offline = try json(try await owner.phone("code", "--json"))
        #expect(offline["fetched"] == false && offline["factor"] == fetched["factor"], "\(offline)")
        let code = try #require(offline["code"]?.string)
        let checked = try await shop.curl("POST", "/verify-otp", json: #"{"username":"alice","otp":"\#(code)"}"#)
        #expect(checked["valid"] == true && checked["factor"] == "totp", "\(checked)")

        let shown = try await relay.operate("user", "show", "alice", "--website", "shop").output
        #expect(shown.contains(try #require(device["device"]?.string)), "\(shown)")
        #expect(try await owner.phone("show").output.contains("agreement"))
    }
}
