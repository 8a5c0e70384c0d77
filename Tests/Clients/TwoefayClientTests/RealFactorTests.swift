import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// The calls about codes, documents, notices, recoveries and webhook secrets, with the real daemon
/// on both stores and the real phone program.
@Suite("RelayClient with a real relay: factors", .timeLimit(.minutes(15)), .mayBlock) struct RealFactorTests {
    /// RFC 4226, appendix D: the secret in base32, and the codes of the counters 0 to 3.
    private static let token = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    private static let codes = ["755224", "287082", "359152", "969429"]

    @Test(arguments: [StoreKind.file, .mariadb])
    func codesAndNoticesReachTheirUser(_ kind: StoreKind) async throws {
        let shop = try await RealShop(try await RunningRelay.start(kind), ["--further-factors", "website"])
        let client = shop.client
        try await shop.bind("ada", try #require(try await client.register("ada").activation).uri)
        try await client.addHOTP(for: "ada", secret: Self.token)
        let device = try #require(try await client.user("ada").devices.first).id
        #expect(try await client.verify("000000", of: "ada") == nil)
        #expect(try await client.verify(Self.codes[0], of: "ada") == .hotp)
        #expect(try await client.verify(Self.codes[0], of: "ada") == nil)
        #expect(try await client.verify(Self.codes[1], ofUserOf: device) == .hotp)

        let text = "The shop is closed on Sunday.\nIt opens on Monday."
        let notice = try await client.leaveMessage("Closed on Sunday", text, for: "ada")
        let unread = try await client.messages(for: "ada")
        #expect(unread.map(\.id) == [notice] && unread.first?.readAt == nil && unread.first?.author == .website)
        let shown = try await shop.phone(["notices", "--read", notice, "--json"], of: "ada")
        #expect(shown["text"]?.string == text && shown["title"]?.string == "Closed on Sunday")
        #expect(try await client.messages(for: "ada").first?.readAt != nil)
        try await client.deleteMessage(notice, for: "ada")
        #expect(try await client.messages(for: "ada").isEmpty)
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func documentIsCheckedByItsDigest(_ kind: StoreKind) async throws {
        let shop = try await RealShop(
            try await RunningRelay.start(kind), ["--certificate-tags", "sign, bare:raw"])
        try await shop.bind("ada", try #require(try await shop.client.register("ada").activation).uri)
        let contract = shop.relay.directory("contract.txt")
        try TextFile.write("Ada buys a difference engine.", to: contract)
        let digest = SHA256.hash(try TextFile.bytes(contract))
        for tag in ["sign", "bare"] {
            try await shop.phone(["certificate", tag], of: "ada")
            let signed = try await shop.phone(
                ["sign", contract, "--tag", tag, "--label", "Contract 7", "--yes", "--json"], of: "ada")
            let device = try #require(signed["device"]?.string)
            let signature: DocumentSignature
            if tag == "sign" {
                signature = .statement(try #require(signed["statement"]?.string))
            } else {
                let text = try #require(signed["signature"]?.string)
                signature = .raw(try #require(Base64.decode(text)))
            }
            let verdict = try await shop.client.verifySignature(of: digest, by: device, tag: tag, signature)
            #expect(verdict.isValid && verdict.username == "ada" && verdict.certificate.tag == tag, "\(verdict)")
            #expect(verdict.label == (tag == "sign" ? "Contract 7" : nil), "\(verdict)")
            let other = SHA256.hash(Array("Ada buys two difference engines.".utf8))
            let forged = try await shop.client.verifySignature(of: other, by: device, tag: tag, signature)
            #expect(!forged.isValid && forged.fault != nil, "\(forged)")
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func lostTokenIsRecovered(_ kind: StoreKind) async throws {
        let (server, files) = (try await AioSMTPServer.knowingTheRelay(), try TemporaryDirectory())
        let page = "https://shop.example.com/recover"
        let relay = try await RunningRelay.start(kind) { try server.use(in: &$0, files) }
        let shop = try await RealShop(relay, ["--recovery-url", page, "--further-factors", "website"])
        let client = shop.client
        let registered = try await client.register("ada", email: "ada@example.org", language: "en")
        try await client.addHOTP(for: "ada", secret: "hex:0102030405060708090a0b0c0d0e0f1011121314")
        try await shop.bind("ada", try #require(registered.activation).uri)
        _ = try await DeliveredMail.inMaildir(server.maildir, 1)

        try await client.startRecovery(of: .hotp, for: "ada")
        let mail = try #require(try await DeliveredMail.inMaildir(server.maildir, 2).last)
        let start = "\(page)#recovery="
        let link = try #require(mail.text.split(separator: "\n").first { $0.hasPrefix(start) }, "\(mail.text)")
        let (handle, opened) = try await client.openRecovery(String(link.dropFirst(start.count)))
        #expect(opened.state == .opened && opened.factor == .hotp && opened.proofs.contains(.push), "\(opened)")
        #expect(try await client.recoveries(of: "ada").map(\.id) == [opened.id])

        let fault = await #expect(throws: CallFault.self) { _ = try await client.proveRecovery(handle) }
        let needed = try #require(fault?.problem?.approval)
        try await shop.approve(needed, of: "ada")
        #expect(try await client.wait(for: needed.challenge).isSuccess)
        let proved = try await client.proveRecovery(handle, approval: needed.challenge)
        #expect(proved.state == .ready, "\(proved)")
        try await client.finishRecoveryOfHOTP(handle, secret: Self.token)
        #expect(try await client.recovery(handle).state == .done)
        #expect(try await client.verify(Self.codes[0], of: "ada") == .hotp)
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func cancelledRecoveryChangesNothing(_ kind: StoreKind) async throws {
        let (server, files) = (try await AioSMTPServer.knowingTheRelay(), try TemporaryDirectory())
        let relay = try await RunningRelay.start(kind) { try server.use(in: &$0, files) }
        let shop = try await RealShop(
            relay, ["--recovery-url", "https://shop.example.com/r", "--further-factors", "website"])
        let client = shop.client
        let registered = try await client.register("ada", email: "ada@example.org")
        try await client.addHOTP(for: "ada", secret: Self.token)
        try await shop.bind("ada", try #require(registered.activation).uri)
        try await client.startRecovery(of: .phones, for: "ada")
        let open = try #require(try await client.recoveries(of: "ada").first)
        #expect(open.factor == .push && open.state == .sent && !open.isByOperator)
        try await client.cancelRecovery(open.id, of: "ada")
        #expect(try await client.recoveries(of: "ada").isEmpty)
        #expect(try await client.user("ada").devices.map(\.state) == [.active])
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func webhookSecretsAreFetched(_ kind: StoreKind) async throws {
        let shop = try await RealShop(
            try await RunningRelay.start(kind), ["--webhook", "https://shop.example.com/webhook"])
        let given = try TextFile.read(shop.relay.directory("shop.secret")).split(separator: "\n").map(String.init)
        let fetched = try await shop.client.webhookSecrets()
        #expect(fetched.secrets == given)
        #expect(fetched.previousUntil == nil && fetched.nextAt.map { $0 > fetched.madeAt } == true, "\(fetched)")
        try await shop.relay.tool("website", "webhook", "shop", "rotate-secret", "--out", shop.relay.directory.path)
        let new = try TextFile.read(shop.relay.directory("shop.secret.new")).split(separator: "\n").map(String.init)
        let rolled = try await shop.client.webhookSecrets()
        #expect(rolled.secrets == new + given && rolled.previousUntil.map { $0 > rolled.madeAt } == true, "\(rolled)")
    }
}
