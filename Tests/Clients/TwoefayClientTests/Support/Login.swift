import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

/// A genuine login: the website's request, the shown context, and the phone's signed decision. A
/// test falsifies a part of it before or after the signature.
struct Login {
    static let origin = "https://login.example.com:8080"

    let key: P256PrivateKey
    var asked = LoginRecord(
        challenge: "9a41c0ffee9a41c0ffee9a41c0ffee00", username: "ada", request: "r-7f3k", number: "07",
        service: "Payments", action: "transfer",
        details: [.init(label: "amount", value: "12,00 €"), .init(label: "payee", value: "Zoë")], ip: "203.0.113.7",
        userAgent: "Firefox/140 (X11)", askedAt: 1_795_249_354)
    /// The website's clock at the check.
    var now: Int64 = 1_795_249_954
    var leastDigits = 2
    var device = "0f3a0f3a0f3a0f3a0f3a0f3a0f3a0f3a"
    var context: JSONObject
    var header: JSONObject
    /// The claims without the digest of the context, which is computed from the shown context.
    var claims: JSONObject

    init() throws {
        key = try P256PrivateKey.generate()
        context = [
            "v": 1, "website": "shop", "display_name": "The Shop", "username": "ada", "service": "Payments",
            "action": "transfer",
            "details": [
                ["label": "amount", "value": "12,00 €"], ["label": "payee", "value": "Zoë"],
            ],
            "ip": "203.0.113.7", "place": "Vienna, Austria", "user_agent": "Firefox/140 (X11)", "request": "r-7f3k",
            "number_digits": 2, "created_at": "2026-11-21T08:22:34.123Z", "expires_at": "2026-11-21T08:27:34.123Z",
        ]
        header = ["typ": "twoefay-decision+jwt", "kid": .string(device)]
        claims = [
            "v": 1, "aud": .string("\(Self.origin)#shop"), "challenge": .string(asked.challenge), "request": "r-7f3k",
            "decision": "approve", "number": "07", "nonce": "5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b", "uv": "passcode",
            "iat": 1_795_249_354,
        ]
    }

    var check: ReceiptCheck {
        ReceiptCheck(origin: Self.origin, website: "shop", displayName: "The Shop", leastDigits: leastDigits)
    }
    var phone: PinnedPhone { PinnedPhone(device: device, key: key.publicKey) }

    var shown: [UInt8] { JSONWriter.write(context) }

    /// The signed claims of a phone that shows `context`.
    var payload: [UInt8] {
        var claims = claims
        if claims["context"] == nil { claims.set("context", .string(Base64URL.encode(SHA256.hash(shown)))) }
        return JSONWriter.write(claims)
    }

    func signed(by other: P256PrivateKey? = nil) throws -> LoginEvidence {
        let receipt = try JWS.sign(header: header, payload: payload, key: other ?? key)
        return LoginEvidence(device: device, receipt: receipt, context: Base64URL.encode(shown))
    }

    /// Returns evidence with a custom header and signature.
    func composed(header: String, sign: (_ input: [UInt8]) throws -> [UInt8]) rethrows -> LoginEvidence {
        let input = "\(Base64URL.encode(Array(header.utf8))).\(Base64URL.encode(payload))"
        let receipt = "\(input).\(Base64URL.encode(try sign(Array(input.utf8))))"
        return LoginEvidence(device: device, receipt: receipt, context: Base64URL.encode(shown))
    }

    /// Returns the fault that the website's check finds, for a request that is open.
    func fault(_ answered: LoginEvidence) async -> ReceiptFault? {
        do throws(ReceiptFault) {
            _ = try await check.approval(answered, to: asked, from: [phone], at: now) { _ in true }
            return nil
        } catch {
            return error
        }
    }
}
