/// The codes that the phone shows itself (TOTP, RFC 6238), for logins without a connection.
public struct PhoneCodes: Sendable, Equatable {
    /// The id of the factor at the relay.
    public let factor: String
    let secret: String
    private let key: [UInt8]
    public let algorithm: DigestAlgorithm
    public let digits: Int
    /// The seconds for which a code counts.
    public let period: Int64

    package init?(_ object: JSONObject) {
        guard let factor = object["factor"]?.string, let secret = object["secret"]?.string,
            let key = Base32.decode(secret), key.count >= 16,
            let algorithm = object["algorithm"]?.string.flatMap({ DigestAlgorithm(rawValue: $0) }),
            let digits = object["digits"]?.integer, (6...8).contains(digits),
            let period = object["period"]?.integer, (10...300).contains(period)
        else { return nil }
        self.factor = factor
        self.secret = secret
        self.key = key
        self.algorithm = algorithm
        self.digits = Int(digits)
        self.period = period
    }

    var json: JSONObject {
        [
            "factor": .string(factor), "secret": .string(secret), "algorithm": .string(algorithm.rawValue),
            "digits": .integer(Int64(digits)), "period": .integer(period),
        ]
    }

    /// Opens a secret that the relay has sealed for this phone (RFC 7516, `ECDH-ES`, `A256GCM`);
    /// nil if it is for another key, phone, website or factor, or of an unknown form.
    package init?(
        sealed: String, factor: String, audience: String, device: String, key: any AgreementKey,
        _ cryptography: any Cryptography
    ) {
        let parts = sealed.split(separator: ".", omittingEmptySubsequences: false)
        // ECDH-ES has no encrypted key.
        guard parts.count == 5, parts[1].isEmpty,
            let header = Base64URL.decode(parts[0]).flatMap(JSONReader.object), header.has("alg", "ECDH-ES"),
            header.has("enc", "A256GCM"), header.has("typ", "twoefay-secret+jwe"), header["crit"] == nil,
            header["zip"] == nil, header.has("aud", audience), header.has("kid", device), header.has("factor", factor),
            // The names of the parties are computed, and not taken from the header.
            header.has("apu", Base64URL.encode(audience.utf8)),
            header.has("apv", Base64URL.encode("\(device).\(factor)".utf8)),
            let sender = header["epk"]?.object.flatMap({ P256PublicKey(jwk: $0) }),
            let nonce = Base64URL.decode(parts[2]), nonce.count == 12,
            let ciphertext = Base64URL.decode(parts[3]), let tag = Base64URL.decode(parts[4]), tag.count == 16,
            let shared = try? key.sharedSecret(with: sender)
        else { return nil }
        // The Concat KDF (RFC 7518, 4.6.2): one round of SHA-256.
        func field(_ bytes: some Collection<UInt8>) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: bytes.count >> (24 - 8 * $0)) } + bytes
        }
        let input =
            [0, 0, 0, 1] + shared + field("A256GCM".utf8) + field(audience.utf8) + field("\(device).\(factor)".utf8)
            + [0, 0, 1, 0]
        guard
            let plaintext = cryptography.openAESGCM(
                key: cryptography.sha256(input), nonce: nonce, ciphertext: ciphertext, tag: tag,
                authenticating: Array(parts[0].utf8)),
            var object = JSONReader.object(plaintext), object["v"]?.integer == 1
        else { return nil }
        object["factor"] = .string(factor)
        self.init(object)
    }

    /// Returns the code that counts at this time of the relay, and the seconds until the next one.
    public func code(at now: Timestamp, _ cryptography: any Cryptography) -> (code: String, secondsLeft: Int64) {
        let seconds = max(0, now.seconds)
        let counter = seconds / period
        let message = (0..<8).map { UInt8(truncatingIfNeeded: counter >> Int64(56 - 8 * $0)) }
        let digest = cryptography.hmac(algorithm, key: key, message)
        // The last four bits are the offset of the number (RFC 4226, 5.3).
        let start = Int(digest[digest.count - 1] & 15)
        let number = digest[start..<(start + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
        let plain = String(number % [1_000_000, 10_000_000, 100_000_000][digits - 6])
        return (String(repeating: "0", count: digits - plain.utf8.count) + plain, period - seconds % period)
    }
}

extension Phone {
    /// Fetches the secret of the phone's codes, and stores it.
    ///
    /// - Parameter pin: the PIN, if an approval would need it.
    public func fetchCodes(pin: String? = nil) async throws(PhoneError) {
        guard let stored = enrolment.agreementKey else { throw .unable("the phone was bound without codes") }
        let key = try signing { try parts.keys.agreementKey(stored: stored) }
        let answer = try await send { () throws(PhoneError) in
            let claims = Statement.secret(agreement: key.publicKey, for: enrolment.audience, at: now)
            let request = try sign("twoefay-secret+jwt", claims)
            var body: JSONObject = ["request": .string(request)]
            if let pin { body["pin_signature"] = .string(try pinSignature(pin, .pin, beside: request)) }
            return RelayRequest("POST", "/device/totp", body)
        }
        guard
            let codes = PhoneCodes(
                sealed: try answer.text("secret"), factor: try answer.id("factor"), audience: enrolment.audience,
                device: try device(), key: key, cryptography)
        else { throw .odd("the secret is not for this phone") }
        try change { $0.codes = codes }
    }

    /// The code that counts now, and the seconds until the next one; nil before the secret was
    /// fetched. It needs no connection.
    public func code() -> (code: String, secondsLeft: Int64)? { enrolment.codes?.code(at: now, cryptography) }
}
