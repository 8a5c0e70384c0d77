import Bytes
import Crypto
import HTTP
import JSON
import Relay
import World

/// The `DPoP` field of a request (RFC 9449): a phone proves that it holds the key with which it was bound, where its
/// connection has no certificate.
enum DPoP {
    static let field = "dpop"
    static let nonceField = "dpop-nonce"

    enum Fault: Error, Sendable, Equatable {
        /// The proof is right as far as it was read, and needs a nonce of now.
        case nonce
        case invalid(String)
    }

    /// Clocks of phones may be wrong by a day: the nonce decides how old a proof is.
    private static let clockFault: Int64 = 24 * 3600

    /// Everything about a proof that can be known at little cost: its form, and that it was made for this request. The
    /// signature is looked at when the key is known (`Relay.device(provedBy:from:)`).
    static func read(
        _ request: Request, origin: String, nonces: Nonces, at now: Timestamp
    ) throws(Fault) -> PresentedProof {
        let values = request.fields.values(field)
        guard let text = values.first, values.count == 1 else { throw .invalid("there must be one DPoP field") }
        let proof: JWSObject
        do {
            proof = try JWS.parse(text, maxBytes: 4096)
        } catch {
            throw .invalid(error.description)
        }
        guard proof.type == "dpop+jwt" else { throw .invalid("typ must be dpop+jwt") }
        guard let claims = (try? JSONReader.read(proof.payload))?.object else {
            throw .invalid("its claims must be a JSON object")
        }
        guard claims["htm"]?.string == request.method else { throw .invalid("htm must be the request's method") }
        guard let url = claims["htu"]?.string, plain(url).utf8.elementsEqual(plain(origin + request.path).utf8) else {
            throw .invalid("htu must be the installation's origin with the request's path")
        }
        guard let id = claims["jti"]?.string, (1...128).contains(id.unicodeScalars.count) else {
            throw .invalid("jti must have 1 to 128 characters")
        }
        guard let issued = claims["iat"]?.integer,
            (now.seconds - clockFault...now.seconds + clockFault).contains(issued)
        else { throw .invalid("iat must be the time in seconds") }
        guard let nonce = claims["nonce"]?.string, let step = nonces.step(of: nonce, at: now) else { throw .nonce }
        guard let jwk = proof.header["jwk"], let key = P256PublicKey.spkiThumbprint(unchecked: jwk) else {
            throw .invalid("jwk must be a public P-256 key")
        }
        return PresentedProof(ProofOfPossession(key: key, id: id, step: step), signed: proof, by: jwk)
    }

    /// Scheme and host mean the same in capitals, and 443 is the port where none is named.
    private static func plain(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return url }
        let end = url[scheme.upperBound...].firstIndex(of: "/") ?? url.endIndex
        let authority = url[..<end].lowercased()
        return (authority.hasSuffix(":443") ? String(authority.dropLast(4)) : authority) + url[end...]
    }

    /// How somebody without a proof that holds is told what a proof needs.
    static func challenge(_ error: String) -> String { "DPoP error=\"\(error)\", algs=\"ES256\"" }
}

extension API {
    /// On routes for phones, callers without a certificate get what their next proof needs.
    func inviting(_ answer: APIResponse, to claim: PresentedIdentity, on route: Route) -> APIResponse {
        guard route.isForPhones else { return answer }
        let error: String
        switch claim {
        case .website, .phone, .unusable: return answer
        case .nobody, .unproved(.nonce): error = "use_dpop_nonce"
        case .key, .unproved(.invalid): error = "invalid_dpop_proof"
        }
        var answer = answer
        if answer.status == Problem.Code.unauthenticated.status {
            answer.add("www-authenticate", DPoP.challenge(error))
        } else if case .key = claim {
            // Every answer brings the nonce for the next proof.
        } else {
            return answer
        }
        answer.add(DPoP.nonceField, relay.nonces.current(at: time.now()))
        return answer
    }
}
