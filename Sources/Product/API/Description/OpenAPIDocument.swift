import Domain
import JSON

/// The OpenAPI 3.1 document, built from the same declarations that the routes use.
///
/// - Each answer and each problem of an operation is listed; there is no `default`. The tests
///   compare every answer that they get with it.
/// - A problem is always the component `Problem`, so that a generated client has one type for it.
///   `x-problem-codes` of a response lists the codes that are possible there.
/// - An object that holds several forms has the members of all of them: generators make one plain
///   type from it.
///
/// Tests: `APITests/OpenAPITests.swift` and `OpenAPIFileTests.swift`.
enum OpenAPIDocument {
    /// - Parameter origin: the origin of the only server; nil leaves the servers out.
    static func document(of routes: [Route], origin: String?) -> JSONObject {
        var paths = JSONObject()
        var schemas = Shape.problem.components
        for route in routes {
            let operation = OpenAPIOperation(of: route)
            var path = paths[route.path.text]?.object ?? [:]
            path.set(route.method.lowercased(), .object(operation.json))
            paths.set(route.path.text, .object(path))
            for form in route.forms {
                for answer in form.answers {
                    if let shape = answer.shape { schemas.merge(shape.components) { first, _ in first } }
                }
            }
        }
        var document: JSONObject = [
            "openapi": "3.1.0",
            "info": [
                "title": "Twoefay", "version": "1", "summary": "Confirms logins on the phones of users",
                "description": .string(about),
            ],
            "tags": .array(
                OpenAPIOperation.Tag.allCases.map { tag in
                    ["name": .string(tag.rawValue), "description": .string(tag.summary)]
                }),
            "paths": .object(paths),
            "components": [
                "schemas": .object(
                    JSONObject(schemas.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.object($0.value)) })),
                "responses": .object(OpenAPIOperation.commonResponses(of: routes)),
                "parameters": .object(languages), "headers": .object(headers), "securitySchemes": .object(security),
            ],
        ]
        if let origin { document.set("servers", [["url": .string(origin)]]) }
        return document
    }

    private static let about = """
        A request whose path is none of these gets 404 `route_not_found`, and one with another method 405 \
        `method_not_allowed` with `Allow`; HEAD is such a method. A query string is always 400 `malformed`. \
        The header fields `token` and `username` may stand in for the members of a body.
        """

    private static let security: JSONObject = [
        "website": ["type": "mutualTLS", "description": "The certificate of a website"],
        "phone": ["type": "mutualTLS", "description": "The certificate of a phone"],
        "proof": [
            "type": "apiKey", "in": "header", "name": "DPoP",
            "description":
                "RFC 9449, ES256: signed by the phone's key for this request, with the DPoP-Nonce value",
        ],
    ]

    /// The header fields that select the language of texts, on every route.
    private static let languages: JSONObject = [
        "AcceptLanguage": [
            "name": "Accept-Language", "in": "header", "schema": ["type": "string"],
            "description":
                "The visitor's or the phone's: the language of problems, and of messages to a user without a language",
        ],
        "AcceptUserLanguage": [
            "name": "Accept-User-Language", "in": "header", "schema": ["type": "string"],
            "description": .string(ownLanguage),
        ],
    ]

    private static let ownLanguage =
        "The person's own choice, in the form of Accept-Language; it has precedence. The relay ignores both beyond "
        + "\(AcceptLanguage.longest) bytes"

    /// The header fields of answers.
    private static let headers: JSONObject = [
        "RequestID": ["description": "Also in the relay's log", "schema": ["type": "string"]],
        "ContentLanguage": [
            "description": "The language of title, detail and message",
            "schema": ["type": "string", "enum": .array(TextLanguage.allCases.map { .string($0.rawValue) })],
        ],
        "RetryAfter": ["description": "In seconds", "schema": ["type": "integer"]],
    ]
}
