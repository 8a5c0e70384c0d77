import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

extension Lie {
    /// Forgeries that succeed against a library that lets the receipt choose its algorithm.
    static let ofForm: [Lie] =
        [
            #""none""#, #""None""#, #""RS256""#, #""PS256""#, #""ES384""#, #""ES256K""#, #""EdDSA""#, #""HS256""#,
            #""es256""#, #"["ES256"]"#, "null", "256",
        ].map { algorithm in
            Lie("rightly signed, but called \(algorithm)", malformed(.algorithm)) { login in
                try login.composed(header: header(algorithm, login)) { try login.key.sign($0) }
            }
        } + [
            Lie("alg none without a signature", malformed(.algorithm)) { login in
                login.composed(header: header(#""none""#, login)) { _ in [] }
            },
            Lie("ES256 without a signature", malformed(.signatureLength)) { login in
                login.composed(header: header(#""ES256""#, login)) { _ in [] }
            },
            // The public key would become a secret that everyone knows.
            Lie("HS256 under the public key", malformed(.algorithm)) { login in
                login.composed(header: header(#""HS256""#, login)) {
                    HMAC.sha256(key: Secret(login.key.publicKey.x963), $0)
                }
            },
            Lie("HS256 under the public key in DER", malformed(.algorithm)) { login in
                login.composed(header: header(#""HS256""#, login)) {
                    HMAC.sha256(key: Secret(login.key.publicKey.spki), $0)
                }
            },
            Lie("a signature in DER", malformed(.signatureLength)) { login in
                try login.composed(header: header(#""ES256""#, login)) { input in
                    let raw = try login.key.sign(input)
                    let body = integer(raw[..<32]) + integer(raw[32...])
                    return [0x30, UInt8(body.count)] + body
                }
            },
        ]

    private static func malformed(_ error: JWSError) -> ReceiptFault { .malformed(error.description) }

    private static func header(_ algorithm: String, _ login: Login) -> String {
        #"{"alg":\#(algorithm),"typ":"twoefay-decision+jwt","kid":"\#(login.device)"}"#
    }

    /// The DER encoding of an INTEGER.
    private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let short = bytes.drop { $0 == 0 }
        let whole = (short.first ?? 0) & 0x80 == 0 ? Array(short) : [0] + short
        return [2, UInt8(whole.count)] + whole
    }
}
