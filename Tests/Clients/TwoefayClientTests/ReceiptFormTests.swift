import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

/// Malformed receipts, which are refused before their content is read.
@Suite struct ReceiptFormTests {
    private let login: Login

    init() throws { login = try Login() }

    private func header(_ algorithm: String) -> String {
        #"{"alg":\#(algorithm),"typ":"twoefay-decision+jwt","kid":"\#(login.device)"}"#
    }

    private func isMalformed(_ answered: LoginEvidence) async -> Bool {
        if case .malformed = await login.fault(answered) { true } else { false }
    }

    @Test("Signatures that no key can create", arguments: [UInt8(0), 0xff]) func degenerateSignatureIsRefused(
        byte: UInt8
    )
        async
    {
        let answered = login.composed(header: header(#""ES256""#)) { _ in [UInt8](repeating: byte, count: 64) }
        #expect(await login.fault(answered) == .signature)
    }

    @Test(
        "Headers with duplicate members or unknown extensions",
        arguments: [
            #"{"alg":"ES256","alg":"ES256","typ":"twoefay-decision+jwt","kid":"KID"}"#,
            #"{"alg":"ES256","typ":"twoefay-decision+jwt","kid":"other","kid":"KID"}"#,
            #"{"alg":"ES256","typ":"twoefay-decision+jwt","kid":"KID","crit":["exp"]}"#,
            #"{"alg":"ES256","typ":"twoefay-decision+jwt","kid":"KID","b64":false,"crit":["b64"]}"#,
            #"{"alg":"ES256","typ":"twoefay-decision+jwt","kid":"KID"}x"#,
            #"["alg"]"#, "", "ES256",
        ])
    func malformedReceiptHeaderIsRefused(template: String) async throws {
        let header = template.split(separator: "KID", omittingEmptySubsequences: false).joined(separator: login.device)
        #expect(await isMalformed(try login.composed(header: header) { try login.key.sign($0) }))
    }

    @Test("Forms other than the compact serialization") func nonCompactJWSIsRefused() async throws {
        let honest = try login.signed()
        let parts = honest.receipt.split(separator: ".").map(String.init)
        let padded = parts.map { $0 + String(repeating: "=", count: (4 - $0.utf8.count % 4) % 4) }
        let json =
            #"{"payload":"\#(parts[1])","protected":"\#(parts[0])","signature":"\#(parts[2])"}"#
        for receipt in [
            "", ".", "..", "\(parts[0]).\(parts[1])", "\(parts[0]).\(parts[1]).", "\(honest.receipt).",
            "\(honest.receipt).\(parts[2])", " \(honest.receipt)", "\(honest.receipt)\n", "Bearer \(honest.receipt)",
            padded.joined(separator: "."), json,
            honest.receipt + String(repeating: "A", count: 20_000),
        ] {
            let answered = LoginEvidence(device: honest.device, receipt: receipt, context: honest.context)
            #expect(await isMalformed(answered), "\(receipt)")
        }
        // An empty payload is well-formed but was not signed.
        let empty = LoginEvidence(
            device: honest.device, receipt: "\(parts[0])..\(parts[2])", context: honest.context)
        #expect(await login.fault(empty) == .signature)
    }

    /// The decoded bytes are the same, but the relay never sends this form.
    @Test(arguments: ["=", " ", "\n", "+"]) func contextInAnotherBase64AlphabetIsRefused(ending: String) async throws {
        let honest = try login.signed()
        let answered = LoginEvidence(device: honest.device, receipt: honest.receipt, context: honest.context + ending)
        #expect(await login.fault(answered) == .context("not base64url, or too long"))
    }

    /// The last base64url character of 64 bytes has four unused bits.
    @Test func unusedBase64BitsAreRefused() async throws {
        let honest = try login.signed()
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let last = try #require(honest.receipt.last.flatMap { alphabet.firstIndex(of: $0) })
        #expect(last.isMultiple(of: 16))
        let other = String(honest.receipt.dropLast()) + String(alphabet[last + 1])
        #expect(
            await isMalformed(LoginEvidence(device: honest.device, receipt: other, context: honest.context)))
    }

    @Test(
        "Claims that are missing or have another type",
        arguments: [
            "v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat",
        ])
    func missingOrMistypedClaimIsRefused(name: String) async throws {
        for value: JSONValue? in [nil, .null, [], true] {
            var login = login
            if name == "context" {
                login.claims[name] = value ?? .null
            } else {
                login.claims[name] = value
            }
            #expect(await login.fault(try login.signed()) == .claims)
        }
    }

    @Test(
        "Claims that are ambiguous or no JSON object",
        arguments: [
            #"{"v":1,"v":1}"#, "[]", "", "7", #"{"v":1"#, #"{"v":1} {}"#,
        ])
    func ambiguousPayloadIsRefused(payload: String) async throws {
        let receipt = try JWS.sign(header: login.header, payload: Array(payload.utf8), key: login.key)
        let answered = LoginEvidence(device: login.device, receipt: receipt, context: Base64URL.encode(login.shown))
        #expect(await login.fault(answered) == .claims)
    }

    @Test func duplicateDecisionClaimIsRefused() async throws {
        let claims = String(decoding: login.payload, as: UTF8.self)
        let twice = #"{"decision":"deny","# + claims.dropFirst()
        let receipt = try JWS.sign(header: login.header, payload: Array(twice.utf8), key: login.key)
        let answered = LoginEvidence(device: login.device, receipt: receipt, context: Base64URL.encode(login.shown))
        #expect(await login.fault(answered) == .claims)
    }
}
