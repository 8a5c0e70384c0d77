import LinuxPhone
import Testing
import TwoefayPhone

/// Documents with a real relay, whose website verifies them.
struct DocumentConversationTests {
    private let relay: RealRelay

    init() throws { relay = try RealRelay() }

    @Test func documentIsSignedAndVerified() async throws {
        let shop = try relay.website()
        let clock = SetClock()
        let lossy = LossyTransport(CurlTransport(clock: clock), losing: ["POST /device/certificate"])
        let app = App(clock: clock, transport: lossy)
        let phone = try await app.enrol(try shop.register())
        let device = try #require(await phone.enrolment.device)
        let document = Array("The contract.\n".utf8)
        await #expect(throws: PhoneError.noAnswer("lost")) { try await phone.certify("sign") }
        await expectRefusal(400, "invalid") { try await phone.certify("sign") }
        try relay.operate("website", "edit", shop.name, "--certificate-tags", "sign, legacy:raw")
        await #expect(throws: PhoneError.self) { try await phone.sign(document: document, label: "x", tag: "sign") }

        // A lost answer is asked for with the same body, and is the same certificate.
        let second = LossyTransport(CurlTransport(clock: clock), losing: ["POST /device/certificate"])
        var later = app
        later.parts.transport = second
        let again = try await later.restarted(phone)
        await #expect(throws: PhoneError.noAnswer("lost")) { try await again.certify("sign") }
        try await again.certify("sign")
        let bodies = second.sent.filter { $0.path == "/device/certificate" && $0.fields["dpop"] != nil }
        #expect(Set(bodies.map { $0.body?.text }).count == 1)
        try await again.certify("legacy")
        let keys = await (try await later.restarted(again)).enrolment.documentKeys
        #expect(keys["sign"]?.isRaw == false && keys["legacy"]?.isRaw == true)
        #expect(keys.values.allSatisfy { $0.certificate != nil && $0.expiresAt != nil })

        let digest = JSONValue.string(Base64URL.encode(OpenSSLCryptography().sha256(document)))
        let signed = try await again.sign(document: document, label: "Contract 7", tag: "sign")
        guard case .statement(let statement) = signed else { throw PhoneError.unable("\(signed)") }
        var body: JSONObject = [
            "device": .string(device), "tag": "sign", "hash": digest, "statement": .string(statement),
        ]
        let verdict = try shop.call("POST", "/verify-signature", body)
        #expect(verdict["valid"]?.bool == true && verdict["label"]?.string == "Contract 7", "\(verdict)")
        body["hash"] = .string(Base64URL.encode([UInt8](0...31)))
        #expect(try shop.call("POST", "/verify-signature", body)["fault"]?.string == "digest")

        let bare = try await again.sign(document: document, label: "Contract 7", tag: "legacy")
        guard case .raw(let der) = bare else { throw PhoneError.unable("\(bare)") }
        // The relay takes the signature in base64 with padding.
        let lines = PEM.encode(der, "X").split(separator: "\n").dropFirst().dropLast()
        let raw: JSONObject = [
            "device": .string(device), "tag": "legacy", "hash": digest, "signature": .string(lines.joined()),
        ]
        let plain = try shop.call("POST", "/verify-signature", raw)
        #expect(plain["valid"]?.bool == true, "\(plain)")
        for label in ["", "a\u{202e}", String(repeating: "x", count: 129)] {
            await #expect(throws: PhoneError.self) {
                try await again.sign(document: document, label: label, tag: "sign")
            }
        }
    }
}
