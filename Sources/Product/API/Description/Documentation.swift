import Bytes
import Crypto
import Domain
import JSON
import Relay

/// The description of the API for programs and for people. It depends on the origin only by one
/// member, so it is built once for a process, and every answer shares its bytes.
struct Documentation: Sendable {
    /// The OpenAPI document, with the server at this origin.
    let document: [UInt8]

    init(origin: String) {
        let servers = JSONWriter.write(["servers": [["url": .string(origin)]]] as JSONObject)
        document = servers.dropLast() + [UInt8(ascii: ",")] + Self.common.dropFirst()
    }

    private static let common = JSONWriter.write(OpenAPIDocument.document(of: API.table.routes, origin: nil))

    static let page = Array(DocsPage(of: OpenAPIDocument.document(of: API.table.routes, origin: nil)).html.utf8)

    static let routes = [
        Route(
            "showOpenAPI", "GET", "/openapi.json", "Returns this document",
            Form(
                .anyone { call async throws(Refusal) in
                    .answer(APIResponse(status: 200, body: call.api.documentation.document))
                },
                answers: [Answer(200, "OpenAPI 3.1", Shape(["type": "object"], example: ["openapi": "3.1.0"]))])),
        Route(
            "showDocs", "GET", "/docs", "Returns this document as a page for people",
            Form(.anyone(showPage), answers: [Answer(200, "The page", contentType: DocsPage.type)])),
    ]

    @Sendable private static func showPage(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        var answer = APIResponse(status: 200, body: page)
        answer.contentType = DocsPage.type
        answer.add("cache-control", "max-age=300")
        answer.add("content-security-policy", policy)
        answer.add("referrer-policy", "no-referrer")
        answer.add("x-content-type-options", "nosniff")
        return .answer(answer)
    }

    /// The page has no script, and only its own style.
    private static let policy =
        "default-src 'none'; style-src 'sha256-\(Base64.encode(SHA256.hash(Array(DocsPage.style.utf8))))'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
