import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import World

/// The `DPoP` field of a request (RFC 9449). With it a phone proves possession of its bound key on
/// a connection without a certificate.
///
/// Invariants: a proof is valid for one request, at one path, with a nonce that a relay issued
/// recently. This file makes only the checks that cost little. `Relay` checks the signature after
/// it has looked up the key, so an unknown key costs no signature check.
///
/// Tests: `APITests/DPoPTests.swift`, `WrongProofTests.swift` and `ProofCostTests.swift`.
enum DPoP {
    static let field = "dpop"
    static let nonceField = "dpop-nonce"

    enum Fault: Error, Sendable, Equatable {
        /// The proof is valid as far as it was read, but needs a current nonce.
        case nonce
        case invalid(LocalizedText)
    }

    /// The largest difference of a phone's clock, one day. The age of a proof is limited by the
    /// nonce.
    private static let clockFault: Int64 = 24 * 3600

    /// Reads a proof and makes all checks that cost little: its form, and that it was made for this
    /// request. The signature is checked after the key was looked up
    /// (`Relay.device(provedBy:from:)`).
    static func read(
        _ request: Request, origins: [String], nonces: Nonces, at now: Timestamp
    ) throws(Fault) -> PresentedProof {
        let values = request.fields.values(field)
        guard let text = values.first, values.count == 1 else {
            throw .invalid(
                LocalizedText(
                    "the request must have exactly one DPoP header field",
                    de: "Die Anfrage muss genau ein Header-Feld DPoP haben"))
        }
        let proof: JWSObject
        do {
            proof = try JWS.parse(text, maxBytes: 4096)
        } catch {
            throw .invalid(error.text)
        }
        guard proof.type == "dpop+jwt" else {
            throw .invalid(LocalizedText("typ must be dpop+jwt", de: "typ muss dpop+jwt sein"))
        }
        guard let claims = (try? JSONReader.read(proof.payload))?.object else {
            throw .invalid(
                LocalizedText("its claims must be a JSON object", de: "Seine Claims müssen ein JSON-Objekt sein"))
        }
        guard claims["htm"]?.string == request.method else {
            throw .invalid(
                LocalizedText("htm must be the request's method", de: "htm muss die Methode der Anfrage sein"))
        }
        guard let url = claims["htu"]?.string.map(plain),
            origins.contains(where: { plain($0 + request.path).utf8.elementsEqual(url.utf8) })
        else {
            throw .invalid(
                LocalizedText(
                    "htu must be the installation's origin with the request's path",
                    de: "htu muss der Ursprung der Installation mit dem Pfad der Anfrage sein"))
        }
        guard let id = claims["jti"]?.string, (1...128).contains(id.unicodeScalars.count) else {
            throw .invalid(
                LocalizedText("jti must have 1 to 128 characters", de: "jti muss 1 bis 128 Zeichen haben"))
        }
        guard let issued = claims["iat"]?.integer,
            (now.seconds - clockFault...now.seconds + clockFault).contains(issued)
        else {
            throw .invalid(
                LocalizedText("iat must be the time in seconds", de: "iat muss die Zeit in Sekunden sein"))
        }
        guard let nonce = claims["nonce"]?.string, let step = nonces.step(of: nonce, at: now) else { throw .nonce }
        guard let jwk = proof.header["jwk"], let key = P256PublicKey.spkiThumbprint(unchecked: jwk) else {
            throw .invalid(
                LocalizedText("jwk must be a public P-256 key", de: "jwk muss ein öffentlicher P-256-Schlüssel sein"))
        }
        return PresentedProof(ProofOfPossession(key: key, id: id, step: step), signed: proof, by: jwk)
    }

    /// The URL with scheme and host in lower case and without the default port 443.
    private static func plain(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return url }
        let end = url[scheme.upperBound...].firstIndex(of: "/") ?? url.endIndex
        let authority = url[..<end].lowercased()
        return (authority.hasSuffix(":443") ? String(authority.dropLast(4)) : authority) + url[end...]
    }

    /// The value of `WWW-Authenticate` for a caller without a valid proof.
    static func challenge(_ error: String) -> String { "DPoP error=\"\(error)\", algs=\"ES256\"" }
}

extension API {
    /// Adds to the answer what a phone without a certificate needs for its next proof: the nonce
    /// and, after a refusal, `WWW-Authenticate`. Other answers are returned unchanged.
    func inviting(_ answer: APIResponse, to claim: PresentedIdentity, on route: Route) -> APIResponse {
        guard route.isForPhones else { return answer }
        let error: String
        switch claim {
        case .website, .phone(_, _, isCertified: true), .unusable: return answer
        case .nobody, .unproved(.nonce): error = "use_dpop_nonce"
        case .key, .phone(_, _, isCertified: false), .unproved(.invalid): error = "invalid_dpop_proof"
        }
        var answer = answer
        switch claim {
        case _ where answer.status == Problem.Code.unauthenticated.status:
            answer.add("www-authenticate", DPoP.challenge(error))
        // Every answer to a proof has the nonce for the next one. A request that was held has the
        // phone in place of its proof.
        case .key, .phone: break
        default: return answer
        }
        answer.add(DPoP.nonceField, relay.nonces.current(at: time.now()))
        return answer
    }
}
