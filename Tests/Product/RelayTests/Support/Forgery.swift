import Bytes
import Crypto
import Domain
import JSON
import TestSupport
import World

/// Compact JWS that no correct phone makes.
enum Forgery {
    /// Signs any two texts like a JWS.
    static func signed(header: String, payload: String, key: P256PrivateKey) throws -> String {
        let input = encode(header) + "." + encode(payload)
        return input + "." + Base64URL.encode(try key.sign(Array(input.utf8)))
    }

    static func encode(_ text: String) -> String { Base64URL.encode(Array(text.utf8)) }

    static func header(device: DeviceID, alg: String = "ES256") -> String {
        #"{"alg":"\#(alg)","typ":"twoefay-decision+jwt","kid":"\#(device)"}"#
    }

    static func parts(_ compact: String) -> [String] { compact.split(separator: ".").map(String.init) }

    static func payload(of compact: String) -> String {
        String(decoding: Base64URL.decode(parts(compact)[1]) ?? [], as: UTF8.self)
    }

    /// Returns the JWS with its signature in DER, as in X.509.
    static func inDER(_ compact: String) -> String {
        let parts = parts(compact)
        let raw = Base64URL.decode(parts[2]) ?? []
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var bytes = Array(bytes.drop { $0 == 0 })
            if bytes.first.map({ $0 >= 0x80 }) != false { bytes.insert(0, at: 0) }
            return [2, UInt8(bytes.count)] + bytes
        }
        let body = integer(raw[..<32]) + integer(raw[32...])
        return parts[0] + "." + parts[1] + "." + Base64URL.encode([0x30, UInt8(body.count)] + body)
    }

    /// Returns the JWS with n - s in place of s, which every verifier accepts as well.
    static func withOtherS(_ compact: String) -> String {
        let parts = parts(compact)
        let raw = Base64URL.decode(parts[2]) ?? []
        var other = [UInt8](repeating: 0, count: 32)
        var borrow = 0
        for at in (0..<32).reversed() {
            let difference = Int(order[at]) - Int(raw[32 + at]) - borrow
            borrow = difference < 0 ? 1 : 0
            other[at] = UInt8(difference + borrow * 256)
        }
        return parts[0] + "." + parts[1] + "." + Base64URL.encode(raw[..<32] + other)
    }

    /// The order n of P-256 (FIPS 186-4, D.1.2.3).
    private static let order: [UInt8] =
        Hex.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") ?? []
}
