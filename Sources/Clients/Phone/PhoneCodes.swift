import Bytes
import Crypto
import JSON
import World

/// The codes that a phone shows itself (TOTP, RFC 6238).
///
/// The relay seals their secret to the phone's agreement key, and the phone stores it with its
/// keys. The codes count at the relay of the enrolment only, so they follow its clock.
public struct PhoneCodes: Sendable {
    public enum Algorithm: String, Sendable, CaseIterable {
        case sha1, sha256, sha512
    }

    /// The id of the factor at the relay.
    public let factor: String
    let secret: Secret
    public let algorithm: Algorithm
    public let digits: Int
    /// The seconds for which a code is shown.
    public let period: Int

    static let type = "twoefay-secret+jwe"

    /// Opens a secret that the relay has sealed for this phone and no other.
    ///
    /// - Returns: nil if it is for another key, phone, website or factor, or of an unknown form.
    init?(sealed: String, factor: String, audience: String, device: String, key: P256PrivateKey) {
        let parties = JWE.Parties(sender: Array(audience.utf8), recipient: Array("\(device).\(factor)".utf8))
        guard let (header, plaintext) = try? JWE.open(sealed, with: key, between: parties),
            header["typ"]?.string == Self.type, header["aud"]?.string == audience,
            header["kid"]?.string == device, header["factor"]?.string == factor,
            var object = (try? JSONReader.read(plaintext.reveal()))?.object, object["v"]?.integer == 1
        else { return nil }
        object.set("factor", .string(factor))
        self.init(object)
    }

    /// Reads the stored form, which is that of the plaintext with the factor.
    init?(_ object: JSONObject) {
        guard let factor = object["factor"]?.string,
            let secret = object["secret"]?.string.flatMap({ Base32.decode($0) }), secret.count >= 16,
            let algorithm = object["algorithm"]?.string.flatMap({ Algorithm(rawValue: $0) }),
            let digits = object["digits"]?.integer, (6...8).contains(digits),
            let period = object["period"]?.integer, (10...300).contains(period)
        else { return nil }
        self.factor = factor
        self.secret = Secret(secret)
        self.algorithm = algorithm
        self.digits = Int(digits)
        self.period = Int(period)
    }

    var json: JSONObject {
        [
            "v": 1, "factor": .string(factor), "secret": .string(Base32.encode(secret.reveal())),
            "algorithm": .string(algorithm.rawValue), "digits": .integer(Int64(digits)),
            "period": .integer(Int64(period)),
        ]
    }

    /// Returns the code at a time of the relay's clock, with leading zeros, and the seconds until
    /// the next one.
    public func code(at now: Timestamp) -> (code: String, secondsLeft: Int) {
        let seconds = max(0, now.seconds)
        let counter = UInt64(seconds) / UInt64(period)
        let message = (0..<8).map { UInt8(truncatingIfNeeded: counter >> UInt64(56 - 8 * $0)) }
        let digest =
            switch algorithm {
            case .sha1: HMAC.sha1(key: secret, message)
            case .sha256: HMAC.sha256(key: secret, message)
            case .sha512: HMAC.sha512(key: secret, message)
            }
        // RFC 4226 §5.3: the last four bits of the digest are the offset of the number.
        let start = Int(digest[digest.count - 1] & 15)
        let number = digest[start..<(start + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
        let plain = String(number % (0..<digits).reduce(UInt32(1)) { bound, _ in bound * 10 })
        return (
            String(repeating: "0", count: digits - plain.utf8.count) + plain, period - Int(seconds % Int64(period))
        )
    }
}

extension Responder {
    /// Fetches the secret of the phone's codes.
    ///
    /// - Parameter pin: the PIN, if the website demands it for approvals.
    /// - Returns: the enrolment with the secret, for the caller to store.
    public func fetchCodes(pin: String? = nil) async throws(CallFailure) -> Enrolment {
        guard let key = enrolment.agreementKey else {
            throw .unable("the phone was bound without a key for secrets: bind it again")
        }
        var body: JSONObject = [:]
        do {
            let request = try SignedStatement.secretRequest(
                of: enrolment, agreement: key.publicKey, device: device, at: line.clock.now())
            body.set("request", .string(request))
            if let pin, let secret = enrolment.pinSecret {
                let pinKey = try secret.key(of: pin, for: .pin)
                body.set("pin_signature", .string(try SignedStatement.signature(over: request, by: pinKey)))
            }
        } catch {
            throw .unable(error.description)
        }
        let answer = try await send(.init("/device/totp", body: body))
        guard
            let codes = PhoneCodes(
                sealed: try answer.text("secret"), factor: try answer.text("factor"), audience: enrolment.audience,
                device: device, key: key)
        else { throw answer.odd("with a secret that is not for this phone") }
        var changed = enrolment
        changed.codes = codes
        changed.clockOffset = line.clock.offset
        return changed
    }

    /// The code that counts now, by the relay's clock as far as it is known.
    public func code() -> (code: String, secondsLeft: Int)? { enrolment.codes?.code(at: line.clock.now()) }
}
