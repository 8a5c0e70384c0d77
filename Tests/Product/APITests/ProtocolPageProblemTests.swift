import Bytes
import HTTP
import JSON
import TestSupport
import Testing

@testable import API

/// The refusals in docs/phones/device-protocol.md, compared with those of the relay.
struct ProtocolPageProblemTests {
    private let page: String

    init() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        page = try TextFile.read("\(root)/docs/phones/device-protocol.md")
    }

    @Test func protocolPageShowsACompleteRefusal() async throws {
        let rig = try await APIRig()
        let refused = await rig.stranger.send(
            "POST", "/verify", ["id_token": "x", "activation_code": "x", "proof": "x", "platform": "phone"])
        #expect(refused.fields["content-type"] == "application/problem+json")
        #expect(page.contains("```json problem\n\(refused.text)\n```\n"), "\(refused.text)")
    }

    /// The page omits codes that a phone cannot get.
    @Test func protocolPageNamesEveryPhoneErrorCode() {
        let others: Set<Problem.Code> = [
            .approvalRequired, .codesLocked, .shownOnce, .idempotencyMismatch,
            // Phones use HTTP/2.
            .requestTimeout, .expectationFailed, .misdirected, .versionUnsupported,
        ]
        for code in Problem.Code.allCases where !others.contains(code) {
            #expect(page.contains("\(code.status) `\(code.rawValue)`"))
        }
    }

    @Test func unknownMemberIsRefusedAsTheProtocolPageSays() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        for (path, body) in [
            ("/pending", ["later": 1]), ("/device", ["name": "x", "later": 1]),
            ("/success", ["challenge": "x", "later": 1]),
        ] as [(String, JSONObject)] {
            let refused = await phone.send("POST", path, body)
            #expect(refused.status == 400 && refused.code == "invalid", "\(path): \(refused.text)")
            #expect(refused.faults.contains("later unknown"), "\(path): \(refused.text)")
        }
    }

    @Test func phoneOfALockedUserSeesNoChallenge() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate", "guesses": "1"])
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, number) = try await shop.login("bob")
        let wrong = number == "12" ? "13" : "12"
        let answered = await phone.send(
            "POST", "/success", ["challenge": .string(challenge), "number": .string(wrong)])
        #expect(answered["login"] == "failure")
        let next = try await shop.login("bob")
        let result = await shop.send("POST", "/auth", ["challenge": .string(next.challenge)])
        #expect(result["reason"] == "locked")
        let pending = await phone.send("POST", "/pending", [:])
        #expect(pending.status == 200 && pending["pending"] == [])
    }

    @Test func revocationCodesMatchTheProtocolPage() async throws {
        #expect(page.contains("the text cannot be a revocation code, which has 20 letters, digits, `-` and `_` |"))
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let bound = try await shop.verify(try TestPhone(pushToken: "push"), token: token, code: code)
        let right = try #require(bound["revocation_code"]?.string, "\(bound.text)")
        #expect(right.utf8.count == 20 && Base64URL.decode(right) != nil)
        for other in [String(right.dropLast()), right + "A", "." + right.dropFirst()] {
            let refused = await rig.stranger.send("POST", "/revoke", ["revocation_code": .string(other)])
            #expect(refused.status == 400 && refused.code == "invalid", "\(other): \(refused.text)")
        }
        #expect(await rig.stranger.send("POST", "/revoke", ["revocation_code": .string(right)]).status == 204)
        #expect(await shop.devices("bob").first?["state"] == "revoked")
    }
}
