import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import TwoefayClient
import Webhooks
import World

@Suite("WebhookReceiver") struct WebhookReceiverTests {
    private let time = TestTime()
    private let secret = WebhookSecret.make(SystemRandomness())
    private let former = WebhookSecret.make(SystemRandomness())

    private func signed(
        _ body: String, id: String = "0123456789abcdef0123456789abcdef", by secrets: [WebhookSecret]? = nil
    ) throws -> [(name: String, value: String)] {
        WebhookHeaders(
            id: try #require(WebhookID(id)), body: Array(body.utf8), at: time.now(), secrets: secrets ?? [secret]
        ).fields
    }

    private func event(_ body: String) throws -> WebhookEvent {
        try WebhookReceiver(secrets: [secret], time: time).verified(fields: try signed(body), body: Array(body.utf8))
    }

    private func fault(_ body: String) -> WebhookFault? {
        do {
            _ = try event(body)
            return nil
        } catch {
            return error as? WebhookFault
        }
    }

    private static func text(_ type: String, _ data: String) -> String {
        #"{"type":"\#(type)","timestamp":"2026-11-22T05:00:00.000Z","data":\#(data)}"#
    }

    /// The result as /auth returns it, and the user's token.
    private static let decided = text(
        "login.decided",
        #"{"login":"success","challenge":"c1","factor":"push","assurance":"high","proof":"signed","#
            + #""steps":[{"factor":"push","state":"answered","at":"2026-11-22T05:00:00.000Z"}],"#
            + #""context":"e30","receipt":"a.b.c","device":"d1","token":"t"}"#)

    @Test func loginDecidedIsParsed() throws {
        let event = try event(Self.decided)
        #expect(event.id == "0123456789abcdef0123456789abcdef" && event.type == "login.decided")
        #expect(event.at == Timestamp(rfc3339: "2026-11-22T05:00:00.000Z"))
        guard case .loginDecided(let token, let outcome) = event.what else {
            Issue.record("\(event.what)")
            return
        }
        #expect(token == "t" && outcome.isSuccess && outcome.challenge == "c1" && outcome.proof == .signed)
        #expect(try LoginEvidence(outcome) == LoginEvidence(device: "d1", receipt: "a.b.c", context: "e30"))
    }

    @Test func accountEventsAreParsed() throws {
        let data =
            #"{"token":"t","device":"d1","name":"Ada's","platform":"ios","thumbprint":"t1","jwk":{"kty":"EC"}}"#
        guard case .deviceBound(let token, let device) = try event(Self.text("device.bound", data)).what else {
            Issue.record("no device.bound")
            return
        }
        #expect(token == "t" && device.id == "d1" && device.name == "Ada's" && device.state == nil)
        guard case .deviceUnbound(_, let gone) = try event(Self.text("device.unbound", data)).what else {
            Issue.record("no device.unbound")
            return
        }
        #expect(gone == device)
        let user = #"{"token":"t","challenge":"c1","reason":"frozen"}"#
        #expect(try event(Self.text("user.frozen", user)).what == .userFrozen(token: "t"))
        #expect(try event(Self.text("user.locked", user)).what == .userLocked(token: "t"))
        #expect(try event(Self.text("codes.locked", user)).what == .codesLocked(token: "t"))
        #expect(try event(Self.text("pin.locked", user)).what == .pinLocked(token: "t"))
        #expect(try event(Self.text("pin.changed", user)).what == .pinChanged(token: "t"))
        #expect(try event(Self.text("puk.locked", user)).what == .pukLocked(token: "t"))
        #expect(try event(Self.text("unlock.issued", user)).what == .unlockIssued(token: "t"))
        #expect(try event(Self.text("temporary.issued", user)).what == .temporaryIssued(token: "t"))
        #expect(try event(Self.text("temporary.used", user)).what == .temporaryUsed(token: "t"))
        #expect(try event(Self.text("user.locked", user)).data["reason"] == "frozen")
        // A later version may send other event types.
        #expect(try event(Self.text("user.renamed", "{}")).what == .other)
    }

    @Test(arguments: [
        "", "[]", "{}", #"{"type":"user.locked","data":{"token":"t"}}"#,
        #"{"type":"user.locked","timestamp":"today","data":{"token":"t"}}"#,
        #"{"type":7,"timestamp":"2026-11-22T05:00:00.000Z","data":{}}"#, text("user.locked", "{}"),
        text("user.frozen", #"{"token":1}"#), text("device.bound", #"{"token":"t"}"#),
        text("device.unbound", #"{"device":"d1"}"#), text("login.decided", #"{"token":"t","login":"wait"}"#),
        text("login.decided", #"{"login":"success"}"#), text("login.decided", #"{"token":"t","login":"yes"}"#),
        text("login.decided", #"{"token":"t","login":"success","steps":[1]}"#),
    ]) func malformedEventIsRefused(body: String) {
        guard case .body = fault(body) else {
            Issue.record("\(String(describing: fault(body)))")
            return
        }
    }

    /// Anyone can send an unsigned webhook.
    @Test func unsignedWebhookIsRefused() async throws {
        let inbox = WebhookReceiver(secrets: [secret], time: time)
        let fields = try signed(Self.decided, by: [former])
        await #expect(throws: WebhookFault.signature) {
            try await inbox.event(fields: fields, body: Array(Self.decided.utf8)) { _ in
                Issue.record("an id was spent")
                return true
            }
        }
        // The signature is verified before the body is parsed: this body is no JSON.
        #expect(throws: WebhookFault.signature) { try inbox.verified(fields: fields, body: [0xff]) }
        let both = WebhookReceiver(secrets: [secret, former], time: time)
        #expect(try both.verified(fields: fields, body: Array(Self.decided.utf8)).type == "login.decided")
        time.advance(by: .seconds(301))
        #expect(throws: WebhookFault.tooOld) { try both.verified(fields: fields, body: Array(Self.decided.utf8)) }
    }

    /// A retry has a new signature and the same id.
    @Test func repeatedWebhookIsHandledOnce() async throws {
        let inbox = WebhookReceiver(secrets: [secret], time: time)
        var kept: Set<String> = []
        var acted = 0
        for _ in 0..<3 {
            let fields = try signed(Self.decided)
            let event = try await inbox.event(fields: fields, body: Array(Self.decided.utf8)) { id in
                kept.insert(id).inserted
            }
            if event != nil { acted += 1 }
            time.advance(by: .seconds(3600))
        }
        #expect(acted == 1)
        let other = try signed(Self.decided, id: "another")
        #expect(
            try await inbox.event(fields: other, body: Array(Self.decided.utf8)) { kept.insert($0).inserted } != nil)
        // The id of a refused webhook is not recorded, so the genuine webhook is still accepted.
        let body = Self.text("user.locked", "{}")
        let wrong = try signed(body, id: "third")
        _ = try? await inbox.event(fields: wrong, body: Array(body.utf8)) { kept.insert($0).inserted }
        #expect(!kept.contains("third"))
    }

    /// An error of the store is not a replay: the website answers with an error, and the relay
    /// retries.
    @Test func storeErrorIsPassedOn() async throws {
        struct Down: Error {}
        let inbox = WebhookReceiver(secrets: [secret], time: time)
        let fields = try signed(Self.decided)
        await #expect(throws: Down.self) {
            try await inbox.event(fields: fields, body: Array(Self.decided.utf8)) { _ in throw Down() }
        }
    }

    /// The test vector of Standard Webhooks. The signature is valid, but the body is no Twoefay
    /// event.
    @Test func publishedVectorIsAccepted() throws {
        let secret = try #require(WebhookSecret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let inbox = WebhookReceiver(secrets: [secret], time: TestTime(start: Timestamp(seconds: 1_614_265_330)))
        let fields = [
            (name: "Webhook-Id", value: "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            (name: "Webhook-Timestamp", value: "1614265330"),
            (name: "Webhook-Signature", value: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ]
        let body = Array(#"{"test": 2432232314}"#.utf8)
        #expect(throws: WebhookFault.body("type, timestamp or data is missing")) {
            try inbox.verified(fields: fields, body: body)
        }
        #expect(throws: WebhookFault.signature) { try inbox.verified(fields: fields, body: body + [0x20]) }
    }
}
