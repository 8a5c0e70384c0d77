import Bytes
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

/// One login a second for fifty seconds, in virtual time.
struct BombingTests {
    @Test func loginsBeyondPushLimitAreQuietAndBeyondLoginLimitAreRefused() async throws {
        let rig = try await APIRig()
        let website = try await rig.relay.website("shop", policies: ["answers": "signed"])
        let shop = Site(rig: rig, certificate: .website("shop"))
        let (token, phone, credential) = try await rig.relay.enrolled("ada", at: website)
        let mine = Site(rig: rig, certificate: phone.certificate(device: credential.id))
        var factors: [String?] = []
        for second in 0..<50 {
            let answer = await shop.send("POST", "/login", ["token": .string(token.text)])
            await rig.relay.settled()
            if second < 20 {
                #expect(answer.status == 201, "\(second): \(answer.text)")
                factors.append(answer["factor"]?.string)
            } else {
                #expect(answer.status == 429 && answer.code == "limited", "\(second): \(answer.text)")
                // The first of the twenty leaves the window of five minutes at 300 s.
                #expect(answer.fields["retry-after"] == String(300 - second), "\(second)")
            }
            if second == 19 {
                let challenge = try #require(answer["challenge"]?.string)
                let list = await mine.send("POST", "/pending")["pending"]?.array ?? []
                #expect(list.map { $0.object?["challenge"]?.string } == [challenge])
                let id = try #require(ChallengeID(challenge))
                let signed = try await rig.relay.signed(
                    .approve, id, number: answer["number"]?.string, by: (phone, credential))
                // The website's own logins are refused meanwhile.
                rig.relay.time.advance(by: .milliseconds(500))
                #expect(await shop.send("POST", "/login", ["token": .string(token.text)]).status == 429)
                let said = await mine.send(
                    "POST", "/success", ["challenge": .string(challenge), "answer": .string(signed)])
                #expect(said.status == 200 && said["login"] == "success", "\(said.text)")
                let result = await shop.send("POST", "/auth", ["challenge": .string(challenge)])
                #expect(result["login"] == "success" && result["proof"] == "signed" && result["factor"] == "pull")
                rig.relay.time.advance(by: .milliseconds(500))
            } else {
                rig.relay.time.advance(by: .seconds(1))
            }
        }
        #expect(factors == Array(repeating: "push", count: 5) + Array(repeating: "pull", count: 15))
        #expect(rig.relay.pushes.sent.count == 5)
    }
}
