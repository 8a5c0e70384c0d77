import Bytes
import Crypto
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// Invalid values of the `DPoP` field.
struct WrongProofTests {
    /// A fault, and the expected error.
    private struct Wrong: Sendable {
        let what: String
        let error: String
        let proof: @Sendable (APIRig, TestPhone) throws -> String
    }

    private static let invalid = "invalid_dpop_proof"
    private static let needsNonce = "use_dpop_nonce"

    private static func claim(_ name: String, _ value: JSONValue?, _ error: String = invalid) -> Wrong {
        Wrong(what: "\(name): \(value.map { "\($0)" } ?? "none")", error: error) { rig, phone in
            try rig.proof(phone) { $0[name] = value }
        }
    }

    private static func header(_ name: String, _ value: JSONValue?) -> Wrong {
        Wrong(what: "\(name): \(value.map { "\($0)" } ?? "none")", error: invalid) { rig, phone in
            try rig.proof(phone, header: { $0[name] = value })
        }
    }

    /// Returns the proof with a changed part, signed again if possible.
    private static func cut(_ what: String, _ change: @escaping @Sendable ([Substring]) -> String) -> Wrong {
        Wrong(what: what, error: invalid) { rig, phone in
            change(try rig.proof(phone).split(separator: ".", omittingEmptySubsequences: false))
        }
    }

    private static func encoded(_ json: String) -> String { Base64URL.encode(Array(json.utf8)) }

    private static let table: [Wrong] = [
        // The header
        header("typ", nil), header("typ", "jwt"), header("typ", "DPOP+JWT"), header("typ", "twoefay-decision+jwt"),
        header("crit", ["exp"]), header("b64", false), header("jwk", nil), header("jwk", "key"), header("jwk", [:]),
        Wrong(what: "a private key", error: invalid) { rig, phone in
            try rig.proof(
                phone,
                header: { header in
                    var jwk = phone.key.publicKey.jwk
                    jwk.set("d", "AAAA")
                    header["jwk"] = .object(jwk)
                })
        },
        Wrong(what: "another curve", error: invalid) { rig, phone in
            try rig.proof(
                phone,
                header: { header in
                    var jwk = phone.key.publicKey.jwk
                    jwk["crv"] = "P-384"
                    header["jwk"] = .object(jwk)
                })
        },
        Wrong(what: "a point that is not on the curve", error: invalid) { rig, phone in
            try rig.proof(
                phone,
                header: { header in
                    var jwk = phone.key.publicKey.jwk
                    jwk["x"] = .string(Base64URL.encode(Array(repeating: 1, count: 32)))
                    header["jwk"] = .object(jwk)
                })
        },
        Wrong(what: "somebody else's key", error: invalid) { rig, phone in
            let other = try P256PrivateKey.generate()
            return try rig.proof(phone, header: { $0["jwk"] = .object(other.publicKey.jwk) })
        },
        cut("alg none, unsigned") { parts in
            encoded(#"{"alg":"none","typ":"dpop+jwt"}"#) + ".\(parts[1])."
        },
        cut("alg HS256") { parts in encoded(#"{"alg":"HS256","typ":"dpop+jwt"}"#) + ".\(parts[1]).\(parts[2])" },
        cut("alg RS256") { parts in encoded(#"{"alg":"RS256","typ":"dpop+jwt"}"#) + ".\(parts[1]).\(parts[2])" },
        // The request
        claim("htm", nil), claim("htm", "GET"), claim("htm", "post"), claim("htm", 1),
        claim("htu", nil), claim("htu", "/pending"), claim("htu", .string(RelayRig.origin)),
        claim("htu", .string(RelayRig.origin + "/success")), claim("htu", .string(RelayRig.origin + "/PENDING")),
        claim("htu", .string(RelayRig.origin + "/pending/")), claim("htu", .string(RelayRig.origin + "/pending?a=b")),
        claim("htu", .string(RelayRig.origin + "/pending#a")), claim("htu", "https://login.example.com/pending"),
        claim("htu", "http://login.example.com:8080/pending"), claim("htu", "https://other.example.com:8080/pending"),
        claim("htu", "https://login.example.com:8080@other.example.com/pending"),
        // Id and time
        claim("jti", nil), claim("jti", ""), claim("jti", 7), claim("jti", .string(String(repeating: "j", count: 129))),
        claim("iat", nil), claim("iat", "1800000000"), claim("iat", 0), claim("iat", .integer(.max)),
        claim("iat", .integer(.min)), claim("iat", .integer(1_800_000_000 - 86_401)),
        claim("iat", .integer(1_800_000_000 + 86_401)),
        claim("nonce", nil, needsNonce), claim("nonce", "", needsNonce), claim("nonce", 5, needsNonce),
        claim("nonce", .string(String(repeating: "A", count: 22)), needsNonce),
        Wrong(what: "a nonce of a quarter of an hour ago", error: needsNonce) { rig, phone in
            let old = rig.neighbour().current(at: rig.relay.time.now() - .seconds(900))
            return try rig.proof(phone) { $0["nonce"] = .string(old) }
        },
        Wrong(what: "a nonce that is not yet", error: needsNonce) { rig, phone in
            let next = rig.neighbour().current(at: rig.relay.time.now() + .seconds(300))
            return try rig.proof(phone) { $0["nonce"] = .string(next) }
        },
        Wrong(what: "a nonce of another installation", error: needsNonce) { rig, phone in
            let other = Nonces(
                masterKey: Secret(Array(repeating: 8, count: 32)), since: rig.relay.time.now(),
                randomness: SystemRandomness())
            return try rig.proof(phone) { $0["nonce"] = .string(other.current(at: rig.relay.time.now())) }
        },
        // The structure
        cut("nothing") { _ in "" }, cut("no JWS") { _ in "proof" }, cut("two parts") { "\($0[0]).\($0[1])" },
        cut("four parts") { "\($0[0]).\($0[1]).\($0[2]).\($0[2])" },
        cut("claims that are no JSON") { "\($0[0]).\(encoded("{")).\($0[2])" },
        cut("claims that are a list") { "\($0[0]).\(encoded("[]")).\($0[2])" },
        cut("padding") { $0.joined(separator: ".") + "=" },
        cut("a truncated signature") { "\($0[0]).\($0[1]).\($0[2].dropLast(2))" },
        cut("no signature") { "\($0[0]).\($0[1])." },
        cut("another signature") { "\($0[0]).\($0[1]).\(Base64URL.encode(Array(repeating: 1, count: 64)))" },
        cut("a signature of zeros") { "\($0[0]).\($0[1]).\(Base64URL.encode(Array(repeating: 0, count: 64)))" },
        Wrong(what: "a DER signature", error: invalid) { rig, phone in
            let parts = try rig.proof(phone).split(separator: ".")
            let raw = try #require(Base64URL.decode(parts[2]))
            func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] { [2, 33, 0] + bytes }
            let body = integer(raw[..<32]) + integer(raw[32...])
            return "\(parts[0]).\(parts[1]).\(Base64URL.encode([0x30, UInt8(body.count)] + body))"
        },
        Wrong(what: "huge", error: invalid) { rig, phone in
            try rig.proof(phone) { $0["more"] = .string(String(repeating: "x", count: 5000)) }
        },
    ]

    @Test func everyWrongProofIsRefused() async throws {
        let statements = Statements()
        let rig = try await APIRig(noting: statements)
        let phone = try await rig.bound("bob", at: "shop")
        #expect(await rig.present(try rig.proof(phone)).status == 200)
        _ = statements.take()
        for wrong in Self.table {
            let response = await rig.present(try wrong.proof(rig, phone))
            #expect(response.status == 401, "\(wrong.what)")
            #expect(response.code == "unauthenticated", "\(wrong.what)")
            #expect(response.asks == wrong.error, "\(wrong.what): \(response.text)")
            #expect(response.fields["dpop-nonce"] == rig.nonce, "\(wrong.what)")
        }
        let twice = await rig.present(try rig.proof(phone), try rig.proof(phone))
        #expect(twice.status == 401 && twice.asks == "invalid_dpop_proof")
        // Two of them are under keys that might belong to a phone.
        #expect(statements.take().count == 2)
        #expect(await rig.present(try rig.proof(phone)).status == 200)
    }
}
