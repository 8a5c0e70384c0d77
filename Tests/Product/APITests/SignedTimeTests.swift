import Bytes
import Crypto
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import API

/// `GET /time` through the API.
struct SignedTimeTests {
    private static let nonce = "AAECAwQFBgcICQoLDA0ODw"

    @Test func timeIsSignedByTheServerCertificate() async throws {
        let rig = try await APIRig()
        let answer = await rig.stranger.send("GET", "/time", fields: [("nonce", Self.nonce)])
        #expect(answer.status == 200, "\(answer.text)")
        let certificate = try RelayRig.server.get().certificate
        let signed = try #require(answer["time"]?.string)
        let statement = try #require(certificate.verified(signed))
        #expect(statement.type == "twoefay-time+jwt")
        #expect(statement.header["x5t#S256"]?.string == Base64URL.encode(SHA256.hash(certificate.der)))
        let claims = try #require(try JSONReader.read(statement.payload).object)
        #expect(
            claims == [
                "v": 1, "aud": .string(RelayRig.origin), "nonce": .string(Self.nonce),
                "time": .string(rig.relay.time.now().rfc3339),
            ])
    }

    @Test(arguments: ["", "short", String(repeating: "a", count: 65), "AAECAwQFBgcICQoLDA0 DQ"])
    func missingOrUnsuitableNonceIsRefused(nonce: String) async throws {
        let rig = try await APIRig()
        let answer = await rig.stranger.send("GET", "/time", fields: nonce.isEmpty ? [] : [("nonce", nonce)])
        #expect(answer.status == 400 && answer.code == "invalid", "\(answer.text)")
        #expect(answer.faults.count == 1 && answer.faults[0].hasPrefix("nonce "), "\(answer.faults)")
    }

    /// Only a form with the parameter reads the header field, and any client may send such a field.
    @Test func nonceFieldsOfOtherRoutesAreIgnored() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        let fields = [("nonce", Self.nonce), ("nonce", "x")]
        #expect(await shop.send("GET", "/user/bob", fields: fields).status == 200)
        let twice = await rig.stranger.send("GET", "/time", fields: fields)
        #expect(twice.status == 400 && twice.faults.contains("nonce mismatch"), "\(twice.text)")
    }

    /// A signature costs more than a bare answer, so strangers have a budget.
    @Test func eachSenderHasABudget() async throws {
        let rig = try await APIRig()
        var statuses: [Int] = []
        for _ in 0..<101 {
            statuses.append(await rig.stranger.send("GET", "/time", fields: [("nonce", Self.nonce)]).status)
        }
        #expect(statuses.prefix(100).allSatisfy { $0 == 200 } && statuses.last == 429)
        rig.relay.time.advance(by: .seconds(1))
        #expect(await rig.stranger.send("GET", "/time", fields: [("nonce", Self.nonce)]).status == 200)
    }
}
