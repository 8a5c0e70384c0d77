import Bytes
import Crypto
import Domain
import HTTP
import Relay
import World

/// The revocation list of the phones' authority, for those who verify phones' certificates
/// themselves.
enum RevocationLists {
    static let routes = [
        Route(
            "showRevocationList", "GET", "/crl", "Returns the revocation list of the phones' authority",
            Form(
                .anyone(show),
                answers: [
                    Answer(200, "The list in DER (RFC 5280)", contentType: "application/pkix-crl"),
                    Answer(304, "The caller has this list, as If-None-Match says"),
                ],
                problems: [
                    .notFound: "the authority is outside of the installation, and has its own list",
                    .unavailable: "the list cannot be made now",
                ]))
    ]

    @Sendable static func show(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        let list = try await call.relay.revocationList()
        let tag = "\"\(Base64URL.encode(SHA256.hash(list.der)))\""
        var answer = APIResponse(status: 304, body: [])
        if !has(tag, call.fields) {
            answer = APIResponse(status: 200, body: list.der)
            answer.contentType = "application/pkix-crl"
        }
        answer.add("etag", tag)
        answer.add("expires", list.nextUpdate.httpDate)
        return .answer(answer)
    }

    /// Whether `If-None-Match` names the list. `*` names every list.
    private static func has(_ tag: String, _ fields: Fields) -> Bool {
        fields.values("if-none-match").flatMap { $0.split(separator: ",") }.contains { item in
            let item = item.trimmed
            return item == "*" || item == tag || item == "W/\(tag)"
        }
    }
}
