import Bytes
import Crypto
import JSON
import Synchronization
import TestSupport
import Testing
import TwoefayClient
import World

/// The real twoefayd and `twoefay phone`, from the activation to the receipt. The website trusts
/// neither and verifies with TwoefayClient and with the code of docs/websites/receipts.md.
@Suite("Receipts of a real relay", .timeLimit(.minutes(15))) struct RealReceiptTests {
    /// A user of the website with one pinned phone.
    private struct Customer {
        let relay: RunningRelay
        let shop: CurlCaller
        let token: String
        let k: Secret
        let device: JSONObject
        let pinned: PinnedPhone
        var keys: String { relay.directory("phone") }

        init(_ kind: StoreKind) async throws {
            relay = try await RunningRelay.start(kind)
            shop = try await relay.website("shop", "--display-name", "The Shop")
            let registered = try await shop.post("/register", ["username": "ada"])
            token = try #require(registered["token"]?.string, "\(registered)")
            let uri = try #require(registered["activation"]?.object?["uri"]?.string)
            // The website adds its own secret to the URI and shows it as a QR code.
            k = Secret(SystemRandomness().bytes(32))
            let enrolled = try await Child.run(
                try BuiltProgram.twoefay.path,
                [
                    "phone", "enrol", "\(uri)&k=\(Base64URL.encode(k.reveal()))", "--name", "Ada's",
                    "--keys", relay.directory("phone"),
                ])
            try #require(enrolled.status == 0, "\(enrolled.errors)")
            let user = try await shop.curl("GET", "/user/ada")
            device = try #require(user["devices"]?.array?.first?.object, "\(user)")
            pinned = try BindingCheck(origin: relay.origin, website: "shop").pinned(device, token: token, k: k)
        }

        /// Opens a challenge with every optional field and has the phone approve it.
        func approved(_ request: String, number: String) async throws -> (asked: LoginRecord, answer: JSONObject) {
            let sent = LoginRecord(
                challenge: "", username: "ada", request: request, number: number, service: "Payments",
                action: "transfer",
                details: [.init(label: "amount", value: "12,00 €"), .init(label: "payee", value: "Zoë \"Z\" Ünal")],
                ip: "203.0.113.7", userAgent: "Firefox/140 (X11)", askedAt: SystemTime().now().seconds)
            var body = sent.body
            body.set("number", .string(number))
            let login = try await shop.post("/login", body)
            var asked = sent
            asked.challenge = try #require(login["challenge"]?.string, "\(login)")
            #expect(login["number"]?.string == number)
            let yes = try await Child.run(
                try BuiltProgram.twoefay.path,
                [
                    "phone", "approve", "--challenge", asked.challenge, "--number", number, "--uv", "passcode",
                    "--keys", keys,
                ])
            try #require(yes.status == 0, "\(yes.errors)")
            let result = try await shop.post("/auth", ["challenge": .string(asked.challenge)])
            return (asked, try #require(result.json?.object, "\(result)"))
        }

        func fault(_ answer: JSONObject, _ asked: LoginRecord, spend: (String) -> Bool = { _ in true }) async
            -> ReceiptFault?
        {
            let check = ReceiptCheck(
                origin: relay.origin, website: "shop", displayName: "The Shop", leastVerification: .passcode,
                leastDigits: 2)
            do throws(ReceiptFault) {
                let approval = try await check.approval(
                    try LoginEvidence(answer), to: asked, from: [pinned], at: SystemTime().now().seconds, spend: spend)
                #expect(approval.device == pinned.device && approval.userVerification == .passcode)
                return nil
            } catch {
                return error
            }
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func realReceiptIsAcceptedAndForgeriesAreRefused(kind: StoreKind)
        async throws
    {
        let customer = try await Customer(kind)
        #expect(customer.device["device"]?.string == customer.pinned.device)
        let (asked, answer) = try await customer.approved("r-1", number: "07")
        let open = Mutex<Set<String>>(["r-1"])
        func spend(_ request: String) -> Bool { open.withLock { $0.remove(request) != nil } }

        // A refused receipt does not use up the request.
        var lies: [(name: String, answer: JSONObject, asked: LoginRecord, fault: ReceiptFault)] = [
            ("another amount in the context", try forged(answer, amount: "92,00 €"), asked, .contextDigest)
        ]
        let own = try P256PrivateKey.generate()
        lies.append(
            ("the same, signed by a key of its own", try forged(answer, amount: "92,00 €", by: own), asked, .signature))
        var meant = asked
        meant.details[0].value = "92,00 €"
        lies.append(("a smaller amount shown than was asked", answer, meant, .field("details")))
        let (later, next) = try await customer.approved("r-2", number: "08")
        lies.append(("the receipt of the login before", answer, later, .request))
        for lie in lies {
            #expect(await customer.fault(lie.answer, lie.asked, spend: spend) == lie.fault, "\(lie.name)")
        }
        #expect(await customer.fault(answer, asked, spend: spend) == nil)
        #expect(await customer.fault(answer, asked, spend: spend) == .requestUsed)
        #expect(await customer.fault(next, later) == nil)

        var cases = [
            PageCode.Case(
                name: "binding", isHonest: true,
                call: [
                    "device": .object(customer.device), "token": .string(customer.token),
                    "k": .string(Hex.encode(customer.k.reveal())), "key": .object(customer.pinned.key.jwk),
                ])
        ]
        cases += lies.map { self.call($0.name, $0.answer, $0.asked, customer, isHonest: false) }
        cases.append(call("honest", answer, asked, customer))
        cases.append(call("the same once more", answer, asked, customer, isHonest: false, again: true))
        cases.append(call("the next", next, later, customer))
        try await PageCode.python(origin: customer.relay.origin).agrees(with: cases)
        if PageCode.hasNode { try await PageCode.node(origin: customer.relay.origin).agrees(with: cases) }
        if PageCode.hasPHP { try await PageCode.php(origin: customer.relay.origin).agrees(with: cases) }
    }

    /// Returns the answer of a relay that tries to get another amount approved.
    private func forged(
        _ answer: JSONObject, amount: String, by own: P256PrivateKey? = nil
    ) throws -> JSONObject {
        let shown = try #require(answer["context"]?.string.flatMap { Base64URL.decode($0) })
        let text = String(decoding: shown, as: UTF8.self)
        let other = Array(text.replacing("12,00 €", with: amount).utf8)
        try #require(other != shown)
        var answer = answer
        answer["context"] = .string(Base64URL.encode(other))
        guard let own else { return answer }
        let receipt = try JWS.parse(try #require(answer["receipt"]?.string))
        var claims = try #require(try JSONReader.read(receipt.payload).object)
        claims["context"] = .string(Base64URL.encode(SHA256.hash(other)))
        answer["receipt"] = .string(
            try JWS.sign(header: receipt.header, payload: JSONWriter.write(claims), key: own))
        return answer
    }

    private func call(
        _ name: String, _ answer: JSONObject, _ asked: LoginRecord, _ customer: Customer, isHonest: Bool = true,
        again: Bool = false
    ) -> PageCode.Case {
        var kept: JSONObject = [
            "challenge": .string(asked.challenge), "sent": .object(asked.body), "asked_at": .integer(asked.askedAt),
        ]
        kept.set("number", asked.number.map { .string($0) })
        let phones = JSONObject([(customer.pinned.device, .object(customer.pinned.key.jwk))])
        return PageCode.Case(
            name: name, isHonest: isHonest,
            call: [
                "answer": .object(answer), "asked": .object(kept), "again": .bool(again), "phones": .object(phones),
            ])
    }
}

extension CurlCaller {
    fileprivate func post(_ path: String, _ body: JSONObject) async throws -> Answer {
        try await curl("POST", path, json: JSONWriter.text(.object(body)))
    }
}
