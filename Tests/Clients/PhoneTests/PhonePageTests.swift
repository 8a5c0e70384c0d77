import Bytes
import Crypto
import JSON
import Testing

/// The demo's phone in the browser, checked with the same tables and examples as the module
/// `Phone`.
struct PhonePageTests {
    @Test(arguments: ["protocol.test.mjs", "requests.test.mjs"]) func phonePageFollowsTheProtocol(file: String)
        async throws
    {
        try await PhonePage().passes(file)
    }

    @Test func phonePageReadsActivationURIs() async throws {
        let key = Base64URL.encode([UInt8](repeating: 7, count: 32))
        let right = ActivationURITests.right
        var uris = [right, "\(right)&k=\(key)&later=%C3%A4"]
        for fault in ActivationURITests.faults {
            let at = try #require(right.firstRange(of: fault.part))
            uris.append(right[..<at.lowerBound] + fault.replacement + right[at.upperBound...])
        }
        let answers = try await PhonePage().answers(uris.map { ["call": "activation", "uri": .string($0)] })
        let read = try answers.prefix(2).map { try #require(try $0.get().object) }
        #expect(read[0]["relay"] == "https://login.example.com:8080" && read[0]["website"] == "shop")
        #expect(read[0]["token"] == "ab12" && read[0]["code"] == "f91r8F9C" && read[0]["k"] == .null)
        #expect(read[0]["pin"] == .string(Base64URL.encode([UInt8](0..<32))))
        #expect(read[1]["k"] == .array(Array(repeating: 7, count: 32)))
        for (answer, fault) in zip(answers.dropFirst(2), ActivationURITests.faults) {
            let thrown = #expect(throws: PhonePage.Thrown.self, "\(fault)") { try answer.get() }
            #expect(thrown?.message.contains(fault.message) == true, "\(fault): \(thrown?.message ?? "")")
        }
    }

    @Test func phonePageShowsTheContextAndRefusesUnknownMembers() async throws {
        func call(_ entry: JSONValue) -> JSONObject {
            ["call": "question", "entry": entry, "website": "shop", "now": "2026-11-21T10:01:00.000Z"]
        }
        let known = Listed { $0["later"] = ["a": [1, 2]] }
        let refused =
            ShownContextTests.faults.map { fault in Listed { $0[fault.name] = fault.value }.json }
            + ShownContextTests.noObjects.map { text in
                guard var entry = Listed().json.object else { return .null }
                entry["context"] = .string(Base64URL.encode(Array(text.utf8)))
                return .object(entry)
            } + ShownContextTests.pieces + [Listed { $0["website"] = "bank" }.json]
        let answers = try await PhonePage().answers(([known.json] + refused).map(call))
        let shown = try #require(try answers[0].get().object)
        #expect(shown["username"] == "alice" && shown["displayName"] == "The Shop" && shown["request"] == "r-1")
        #expect(shown["details"] == [["label": "amount", "value": "12.00 EUR"]] && shown["numberDigits"] == 2)
        for (answer, entry) in zip(answers.dropFirst(), refused) {
            #expect(throws: PhonePage.Thrown.self, "\(JSONWriter.text(entry))") { try answer.get() }
        }
    }

    @Test func phonePageSignsAsDocumented() async throws {
        let page = try ProtocolPageTests()
        let claims = try page.members("decision claims")
        let header = try page.members("decision header")
        func now(_ name: String) throws -> JSONValue {
            .integer(try #require(try page.members("\(name) claims")["iat"]?.integer) * 1000)
        }
        var jwk = page.key.publicKey.jwk
        // The key of RFC 6979, A.2.5, which the page names.
        jwk.set("d", "ya-p2EW6dRZrXCFXZ7HWk05Qw9s26JsSe4piKxIPZyE")
        let enrol = try page.members("enrol claims")
        let phone: JSONValue = [
            "key": .object(jwk), "relay": "https://login.example.com:8080", "website": "shop",
            "token": enrol["id_token"] ?? .null, "pushToken": enrol["dev_token"] ?? .null,
            "device": header["kid"] ?? .null,
        ]
        let entry: JSONValue = [
            "challenge": claims["challenge"] ?? .null, "nonce": claims["nonce"] ?? .null,
            "context": .string(try page.example("context base64url")), "expires_at": "2026-11-21T10:09:30.120Z",
        ]
        let dpop = try page.members("dpop claims")
        let answers = try await PhonePage().answers([
            ["call": "thumbprint", "jwk": .object(page.key.publicKey.jwk)],
            ["call": "enrolment", "phone": phone, "code": enrol["activation_code"] ?? .null, "now": try now("enrol")],
            [
                "call": "decision", "phone": phone, "entry": entry, "now": try now("decision"),
                "decision": ["word": "approve", "number": "47", "uv": "biometric"],
            ],
            [
                "call": "dpop", "phone": phone, "method": "POST", "url": dpop["htu"] ?? .null,
                "nonce": dpop["nonce"] ?? .null, "id": dpop["jti"] ?? .null, "now": try now("dpop"),
            ],
            [
                "call": "pushToken", "phone": phone,
                "token": try page.members("token claims")["dev_token"] ?? .null, "now": try now("token"),
            ],
            ["call": "binding", "phone": phone, "k": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"],
        ]).map { try #require(try $0.get().string) }
        #expect(answers[0] == page.key.publicKey.thumbprint)
        for (name, jws) in zip(["enrol", "decision", "dpop", "token"], answers.dropFirst()) {
            #expect(try page.unsigned(jws) == page.signed(name), "\(name)")
            #expect(try JWS.parse(jws, algorithm: .es256).verify(page.key.publicKey), "\(name)")
        }
        #expect(try answers[5] == page.example("binding jws"))
    }

    /// RFC 6238, appendix B, with each of its three secrets.
    @Test func phonePageTOTPMatchesRFC6238() async throws {
        let moments: [(seconds: Int64, codes: [String])] = [
            (59, ["94287082", "46119246", "90693936"]),
            (1_111_111_109, ["07081804", "68084774", "25091201"]),
            (20_000_000_000, ["65353130", "77737706", "47863826"]),
        ]
        var calls: [JSONObject] = []
        for moment in moments {
            for (name, size) in [("SHA1", 20), ("SHA256", 32), ("SHA512", 64)] {
                let seed = (0..<size).map { UInt8(ascii: "0") + UInt8(($0 + 1) % 10) }
                let uri = "otpauth://totp/x?secret=\(Base32.encode(seed))&digits=8&algorithm=\(name)"
                calls.append(["call": "otp", "uri": .string(uri), "now": .integer(moment.seconds * 1000)])
            }
        }
        let answers = try await PhonePage().answers(calls).map { try #require(try $0.get().object) }
        #expect(answers.map { $0["code"]?.string } == moments.flatMap(\.codes))
        #expect(answers.map { $0["left"]?.integer } == [1, 1, 1, 1, 1, 1, 10, 10, 10])
    }

    @Test func phonePageReadsOTPAuthURIs() async throws {
        let right = "otpauth://totp/Shop%20%C3%9C%20%26%20Co:a%20b%40c?secret=GEZDGNBV&issuer=Shop%20%C3%9C"
        let wrong = [
            "otpauth://hotp/x?secret=GEZDGNBV", "otpauth://totp/x?secret=GEZDGNB1", "otpauth://totp/x",
            "otpauth://totp/x?secret=GEZDGNBV&secret=GEZDGNBV", "otpauth://totp/%FF?secret=GEZDGNBV",
            "otpauth://totp/x?secret=GEZDGNBV&digits=5", "otpauth://totp/x?secret=GEZDGNBV&period=0",
            "otpauth://totp/x?secret=GEZDGNBV&algorithm=MD5", "https://totp/x?secret=GEZDGNBV",
        ]
        let answers = try await PhonePage().answers(
            ([right, "\(right)&digits=8&period=60&algorithm=SHA256"] + wrong).map {
                ["call": "otpauth", "uri": .string($0)]
            })
        let (plain, long) = (try #require(try answers[0].get().object), try #require(try answers[1].get().object))
        #expect(plain["issuer"] == "Shop Ü" && plain["account"] == "a b@c" && plain["algorithm"] == "SHA1")
        #expect(plain["secret"] == [49, 50, 51, 52, 53] && plain["digits"] == 6 && plain["period"] == 30)
        #expect(long["digits"] == 8 && long["period"] == 60 && long["algorithm"] == "SHA256")
        for (answer, uri) in zip(answers.dropFirst(2), wrong) {
            #expect(throws: PhonePage.Thrown.self, "\(uri)") { try answer.get() }
        }
    }

    @Test func phonePageMakesInvisibleCharactersVisible() async throws {
        let texts = ["Zoë 😀", "a\u{200b}b", "a\u{202e}b\u{0}", "\u{3164}"]
        let answers = try await PhonePage().answers(texts.map { ["call": "visible", "text": .string($0)] })
        #expect(
            try answers.map { try $0.get().string } == ["Zoë 😀", "a\\u{200b}b", "a\\u{202e}b\\u{0}", "\\u{3164}"])
    }
}
