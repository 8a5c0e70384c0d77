import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import TwoefayClient

@testable import Phone

/// The age of the user verification, from `twoefay phone` to the result of the website.
@Suite(.timeLimit(.minutes(15))) struct VerificationAgePhoneTests {
    private struct Scene {
        let relay: RunningRelay
        let shop: CurlCaller
        let owner: Owner

        init(_ kind: StoreKind, _ policies: String...) async throws {
            relay = try await RunningRelay.start(kind)
            let arguments = ["website", "add", "shop", "--out", relay.directory.path, "--number", "0"]
            try await relay.tool(arguments + policies)
            shop = relay.caller(
                certificatePath: relay.directory("shop.pem"), keyPath: relay.directory("shop.key"))
            owner = try Owner()
            let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
            let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
            let enrolled = try await owner.phone("enrol", uri)
            try #require(enrolled.status == 0, "\(enrolled.errors)")
        }

        func login() async throws -> String {
            let asked = try await shop.curl("POST", "/login", json: #"{"username":"alice"}"#)
            return try #require(asked["challenge"]?.string, "\(asked)")
        }

        func approve(_ challenge: String, _ options: String...) async throws -> Child.Ended {
            try await owner.begin(
                ["approve", "--challenge", challenge, "--json", "--keys", owner.keys] + options
            ).ended()
        }

        func outcome(_ challenge: String) async throws -> LoginOutcome {
            let answer = try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
            return try LoginOutcome(try #require(answer.json?.object, "\(answer)"))
        }
    }

    private func claims(_ outcome: LoginOutcome) throws -> JSONObject {
        let receipt = try #require(outcome.json["receipt"]?.string)
        return try #require(try JSONReader.read(try JWS.parse(receipt).payload).object)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func recentVerificationIsDemanded(kind: StoreKind) async throws {
        let scene = try await Scene(kind, "--max-uv-age", "120")
        let challenge = try await scene.login()
        for options in [["--uv", "passcode", "--uv-age", "121"], ["--uv-age", "0"]] {
            let refused = try await scene.owner.begin(
                ["approve", "--challenge", challenge, "--keys", scene.owner.keys] + options
            ).ended()
            #expect(refused.status == 1 && refused.errors.contains("within the last 120 seconds"), "\(refused)")
        }
        #expect(try await scene.outcome(challenge).login == .wait)
        let approved = try await scene.approve(challenge, "--uv", "biometric", "--uv-age", "120")
        #expect(approved.status == 0, "\(approved)")
        let outcome = try await scene.outcome(challenge)
        #expect(outcome.isSuccess && outcome.assurance == .high)
        #expect(outcome.userVerification == .biometric && outcome.userVerificationAge == 120)
        #expect(try claims(outcome)["uv_age"] == 120)
    }

    /// A website that has not demanded the age does not get it.
    @Test func ageIsSentOnlyIfDemanded() async throws {
        let scene = try await Scene(.file)
        let challenge = try await scene.login()
        let approved = try await scene.approve(challenge, "--uv", "passcode", "--uv-age", "5")
        #expect(approved.status == 0, "\(approved)")
        let outcome = try await scene.outcome(challenge)
        #expect(outcome.isSuccess && outcome.userVerificationAge == nil)
        #expect(try claims(outcome)["uv_age"] == nil)
        let bad = try await scene.owner.phone("deny", "--uv-age", "yesterday")
        #expect(bad.status == 2, "\(bad.errors)")
    }
}
