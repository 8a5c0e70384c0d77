import Crypto
import HTTP
import Relay
import World

/// The meaning of an EST server's answer to a request for a certificate (RFC 7030, 4.2.3).
enum ESTAnswer {
    /// The longest pause that is passed on to a phone.
    static let longestPause = Duration.seconds(86_400)

    /// Returns the certificate for a key. The server may send its own certificates, too.
    static func certificate(in answer: Response, for key: P256PublicKey) throws(CertificateFailure) -> Certificate {
        switch answer.status {
        case 200: break
        case 202:
            throw .later("the EST server has not decided yet (202)", pause(answer.fields) ?? .seconds(3600))
        case 429, 500...599:
            let reason = "the EST server answered \(answer.status)"
            guard let pause = pause(answer.fields) else { throw .unavailable(reason) }
            throw .later(reason, pause)
        case 401: throw .failed("the EST server answered 401: check the credentials in the group est")
        case 404: throw .failed("the EST server answered 404: check est.url")
        default: throw .failed("the EST server answered \(answer.status)")
        }
        let type = answer.fields["content-type"]?.split(separator: ";").first.map { $0.lowercased() } ?? ""
        guard type.filter({ $0 != " " }) == "application/pkcs7-mime" else {
            throw .failed("the EST server sent no application/pkcs7-mime")
        }
        let all = try certificates(answer.body)
        guard let found = all.first(where: { $0.spkiThumbprint == key.spkiThumbprint }) else {
            throw .failed("the EST server sent no certificate for the key of the request")
        }
        return found
    }

    /// Reads certificates in base64, whatever the header fields say about it.
    static func certificates(_ body: [UInt8]) throws(CertificateFailure) -> [Certificate] {
        do throws(CryptoFailure) {
            return try CertificateBag.certificates(base64: body)
        } catch {
            throw .failed("the EST server sent no certificates (\(body.count) bytes): \(error)")
        }
    }

    /// Returns the pause in seconds, at most a day. A date in Retry-After is ignored.
    private static func pause(_ fields: Fields) -> Duration? {
        fields["retry-after"].flatMap { Int64($0) }.map { min(max(.seconds($0), .seconds(1)), longestPause) }
    }
}
