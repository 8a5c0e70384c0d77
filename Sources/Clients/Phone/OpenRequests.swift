import Crypto
import JSON
import World

/// The requests for certificates that have no certificate yet.
///
/// Purpose: an answer may be lost, and an authority may decide later. A repetition must then have the
/// same certificate request: otherwise somebody would have to approve it once more (RFC 7030, 4.2.3).
/// For a tag it has the same proof, too, as long as the relay accepts its time: the relay then answers
/// with the certificate that it has issued, and no further one is used up.
///
/// Invariant: a request is stored before it is sent, and removed when its certificate has arrived. One
/// for a tag is also removed when the relay has refused it for good. The one for the phone's own key
/// stays: a new one would differ from it in nothing but the signature. Tested in
/// `OpenRequestTests.swift`.
public struct OpenRequests: Sendable, Equatable {
    /// A request for the certificate of a tag.
    struct Tagged: Sendable, Equatable {
        /// The name that it asks for.
        let name: String
        /// The certificate request in PEM.
        let request: String
        /// The proof about it, a `twoefay-certificate+jwt`.
        let proof: String
        /// The time of the proof.
        let at: Timestamp
    }

    /// The time for which a proof is sent again. The relay accepts a difference of five minutes
    /// between its clock and the time of a proof.
    static let proofLife = Duration.seconds(240)

    /// The certificate request for the phone's own key, in PEM.
    var own: String?
    var tagged: [String: Tagged] = [:]

    public init() {}

    var isEmpty: Bool { own == nil && tagged.isEmpty }

    /// The tags that wait for a certificate.
    public var tags: [String] { tagged.keys.sorted() }

    /// Returns the request for the phone's own key; a new one unless one is open.
    mutating func request(of enrolment: Enrolment) throws(CryptoFailure) -> String {
        if let own, (try? SigningRequest(pem: Array(own.utf8)))?.key == enrolment.key.publicKey { return own }
        let request = try enrolment.certificateRequest()
        own = request
        return request
    }

    /// Returns the request for a tag: the open one, with a new proof if the old one is no longer
    /// accepted; a new one if none is open for this key and name.
    mutating func request(
        _ tag: String, isRaw: Bool, key: P256PrivateKey, of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> Tagged {
        let name = "twoefay:\(isRaw ? "raw-signer" : "signer"):\(device):\(tag)"
        var known: String?
        if let open = tagged[tag], open.name == name,
            (try? SigningRequest(pem: Array(open.request.utf8)))?.key == key.publicKey
        {
            if now >= open.at, now - open.at < Self.proofLife { return open }
            known = open.request
        }
        let request: String
        if let known {
            request = known
        } else {
            request = String(decoding: try SigningRequest(CertificateName(uri: name), key: key).pem(), as: UTF8.self)
        }
        let new = Tagged(
            name: name, request: request,
            proof: try SignedStatement.certificate(request, tag: tag, of: enrolment, device: device, at: now), at: now)
        tagged[tag] = new
        return new
    }

    /// Removes the request for a tag after a failure that a repetition would only repeat.
    mutating func end(_ tag: String, after failure: CallFailure) {
        guard case .refused(let refusal) = failure, (400..<500).contains(refusal.status), refusal.status != 429 else {
            return
        }
        tagged[tag] = nil
    }

    var json: JSONObject {
        var tags: JSONObject = [:]
        for (tag, open) in tagged.sorted(by: { $0.key < $1.key }) {
            tags.set(
                tag,
                .object([
                    "name": .string(open.name), "csr": .string(open.request), "proof": .string(open.proof),
                    "at": .string(open.at.rfc3339),
                ]))
        }
        return ["own": .text(own), "tags": .object(tags)]
    }

    /// Reads the stored form. What cannot be read is asked for anew.
    init(_ object: JSONObject) {
        own = object["own"]?.string
        for member in object["tags"]?.object?.members ?? [] {
            guard let open = member.value.object, let name = open["name"]?.string, let request = open["csr"]?.string,
                let proof = open["proof"]?.string, let at = open["at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
            else { continue }
            tagged[member.name] = Tagged(name: name, request: request, proof: proof, at: at)
        }
    }
}
