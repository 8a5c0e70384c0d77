import Domain
import JSON
import Relay

/// The OpenAPI 3.1 description of the API, built from the same declarations that the routes use.
enum OpenAPIDocument {
    static let routes = [
        Route(
            "GET", "/openapi.json", "Returns this document", Form(.anyone(show), answers: [(200, "OpenAPI 3.1")]))
    ]

    @Sendable static func show(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        .answer(APIResponse(status: 200, body: call.api.description))
    }

    static func document(of routes: [Route], origin: String) -> JSONObject {
        var paths = JSONObject()
        for route in routes {
            var path = paths[route.path.text]?.object ?? [:]
            path.set(route.method.lowercased(), .object(operation(route)))
            paths.set(route.path.text, .object(path))
        }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Twoefay", "version": "1", "summary": "Confirms logins on the phones of users",
            ],
            "servers": [["url": .string(origin)]],
            "paths": .object(paths),
            "components": [
                "schemas": ["Problem": .object(problem)],
                "responses": ["Problem": .object(problemAnswer)],
                "parameters": .object(languages),
                "securitySchemes": [
                    "website": ["type": "mutualTLS", "description": "The certificate of a website"],
                    "phone": ["type": "mutualTLS", "description": "The certificate of a phone"],
                    "proof": [
                        "type": "apiKey", "in": "header", "name": "DPoP",
                        "description":
                            "RFC 9449, ES256: signed by the phone's key for this request, with the DPoP-Nonce value",
                    ],
                ],
            ],
        ]
    }

    private static func operation(_ route: Route) -> JSONObject {
        var operation: JSONObject = ["summary": .string(route.summary)]
        let languages = languages.names.map { JSONValue.object(["$ref": .string("#/components/parameters/\($0)")]) }
        operation.set("parameters", .array(places(route) + fields(route) + languages))
        let bodies = route.method == "GET" ? [] : route.forms.filter { !$0.parameters.isEmpty }.map(\.schema)
        if let only = bodies.first {
            let schema = bodies.count == 1 ? only : .object(["oneOf": .array(bodies)])
            operation.set("requestBody", ["content": ["application/json": ["schema": schema]]])
        }
        var answers = JSONObject()
        for answer in route.forms.flatMap(\.answers) {
            let status = String(answer.status)
            let before = answers[status]?.object?["description"]?.string.map { "\($0); or: " } ?? ""
            answers.set(status, ["description": .string(before + answer.content)])
        }
        answers.set("default", ["$ref": "#/components/responses/Problem"])
        operation.set("responses", .object(answers))
        operation.set("security", .array(route.forms.flatMap(\.security)))
        return operation
    }

    private static func places(_ route: Route) -> [JSONValue] {
        route.path.segments.compactMap { segment in
            guard case .parameter(let name) = segment else { return nil }
            return ["name": .string(name), "in": "path", "required": true, "schema": ["type": "string"]]
        }
    }

    /// The header fields that the route accepts.
    private static func fields(_ route: Route) -> [JSONValue] {
        let takesKeys = route.forms.contains { if case .website = $0.action { !$0.isSafe } else { false } }
        if route.method == "GET" {
            // A GET has no body, so its parameters are header fields.
            return route.forms.flatMap(\.parameters).map { parameter in
                [
                    "name": .string(parameter.name), "in": "header", "required": .bool(parameter.isRequired),
                    "description": .string(parameter.summary), "schema": .object(parameter.schema),
                ]
            }
        }
        guard route.method == "POST" else { return [] }
        var names: [(String, String)] = []
        if takesKeys {
            names.append(("Idempotency-Key", "A repeat with the same key returns the first answer, for 24 hours"))
        }
        for name in ["token", "username"] where route.forms.contains(where: { $0.declares(name) }) {
            names.append((name, "Used if the body has no \(name)"))
        }
        if ["/auth", "/pending"].contains(route.path.text) {
            names.append(("Prefer", "wait=N: holds the request for up to N seconds, at most 60"))
        }
        return names.map { name, summary in
            ["name": .string(name), "in": "header", "description": .string(summary), "schema": ["type": "string"]]
        }
    }

    /// The header fields that select the language of texts, on every route.
    private static let languages: JSONObject = [
        "AcceptLanguage": [
            "name": "Accept-Language", "in": "header", "schema": ["type": "string", "maxLength": maxLanguages],
            "description":
                "The visitor's or the phone's: the language of problems, and of messages to a user without a language",
        ],
        "AcceptUserLanguage": [
            "name": "Accept-User-Language", "in": "header", "schema": ["type": "string", "maxLength": maxLanguages],
            "description": "The person's own choice, in the form of Accept-Language; it has precedence",
        ],
    ]
    private static let maxLanguages = JSONValue.integer(Int64(AcceptLanguage.longest))

    private static let problemAnswer: JSONObject = [
        "description": "A problem document",
        "headers": [
            "Content-Language": [
                "description": "The language of title, detail and message",
                "schema": ["type": "string", "enum": .array(TextLanguage.allCases.map { .string($0.rawValue) })],
            ]
        ],
        "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
    ]

    private static let problem: JSONObject = [
        "type": "object",
        "properties": [
            "type": ["type": "string"], "title": ["type": "string"], "status": ["type": "integer"],
            "code": ["type": "string", "enum": .array(Problem.Code.allCases.map { .string($0.rawValue) })],
            "detail": ["type": "string"],
            "errors": [
                "type": "array",
                "items": [
                    "type": "object",
                    "properties": [
                        "parameter": ["type": "string"], "code": ["type": "string"],
                        "message_key": ["type": "string"], "message": ["type": "string"],
                    ],
                ],
            ],
        ],
        "required": ["type", "title", "status", "code", "detail"],
    ]
}

extension Form {
    fileprivate var schema: JSONValue {
        var schema = BodyMembers.schema(parameters, oneOf: oneOf)
        if isOriginal { schema.set("description", "Only for websites with the policy answers: website") }
        return .object(schema)
    }

    /// The alternative ways to authenticate.
    fileprivate var security: [JSONValue] {
        switch action {
        case .anyone: [[:]]
        case .website: [["website": []]]
        case .phone: [["phone": []], ["proof": []]]
        }
    }

    fileprivate func declares(_ name: String) -> Bool { parameters.contains { $0.name == name } }
}
