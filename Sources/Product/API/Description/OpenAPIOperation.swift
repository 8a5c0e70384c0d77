import Domain
import HTTP
import JSON

/// An operation of the OpenAPI document, which describes a route.
struct OpenAPIOperation {
    /// The callers of the operations, by which clients and readers find them.
    enum Tag: String, CaseIterable {
        case websites, phones, anyone

        var summary: String {
            switch self {
            case .websites: "For websites, with their certificate"
            case .phones: "For phones, with a certificate or a DPoP proof"
            case .anyone: "For anyone, without a certificate"
            }
        }
    }

    private let route: Route

    init(of route: Route) { self.route = route }

    var json: JSONObject {
        var operation: JSONObject = [
            "operationId": .string(route.name), "summary": .string(route.summary),
            "tags": [.string(tag.rawValue)],
        ]
        operation.set("parameters", .array(places + fields + Self.languages))
        operation.set("requestBody", body.map { .object($0) })
        operation.set("responses", .object(responses))
        operation.set("security", .array(route.forms.flatMap(\.security)))
        return operation
    }

    private var tag: Tag {
        switch route.forms.first?.action {
        case .website: .websites
        case .phone: .phones
        case .anyone, nil: .anyone
        }
    }

    // MARK: Requests

    private var places: [JSONValue] {
        route.path.names.map { name in
            var schema = name == "username" ? Parameters.username.schema : ["type": "string", "minLength": 1]
            schema.set("examples", [Self.examples[name] ?? Shape.id.example])
            return ["name": .string(name), "in": "path", "required": true, "schema": .object(schema)]
        }
    }

    private static let examples: [String: JSONValue] = ["username": "bob", "dependency": "store"]

    /// The header fields that the route accepts.
    private var fields: [JSONValue] {
        // A GET has no body, so its parameters are header fields.
        var fields: [(name: String, summary: String, isRequired: Bool, schema: JSONObject)] =
            route.method == "GET"
            ? route.forms.flatMap(\.parameters).map { ($0.name, $0.summary, $0.isRequired, $0.schema) } : []
        if route.takesKeys {
            fields.append(
                (
                    "Idempotency-Key",
                    "A website's repeat with the same key returns the first answer, for 24 hours", false,
                    ["type": "string", "pattern": "^[!-~]{1,255}$"]
                ))
        }
        if ["/auth", "/pending"].contains(route.path.text) {
            fields.append(
                (
                    "Prefer", "wait=N: holds the request for up to N seconds, at most \(Preference.longestWait)", false,
                    ["type": "string"]
                ))
        }
        if route.forms.contains(where: { $0.answers.contains { $0.status == 304 } }) {
            fields.append(("If-None-Match", "The ETag of the last answer", false, ["type": "string"]))
        }
        return fields.map { field in
            [
                "name": .string(field.name), "in": "header", "required": .bool(field.isRequired),
                "description": .string(field.summary), "schema": .object(field.schema),
            ]
        }
    }

    private static let languages: [JSONValue] = ["AcceptLanguage", "AcceptUserLanguage"].map {
        ["$ref": .string("#/components/parameters/\($0)")]
    }

    private var body: JSONObject? {
        guard route.method != "GET" else { return nil }
        let forms = route.forms.filter { !$0.parameters.isEmpty }
        guard let first = forms.first else { return nil }
        // Only the members that each form needs are required.
        let required = forms.map { form in Set(form.parameters.filter(\.isRequired).map(\.name)) }
            .reduce(Set(first.parameters.map(\.name))) { $0.intersection($1) }
        var parameters = first.parameters
        for form in forms.dropFirst() {
            parameters += form.parameters.filter { new in !parameters.contains { $0.name == new.name } }
        }
        let oneOf = forms.allSatisfy { !$0.oneOf.isEmpty } ? first.oneOf : []
        var schema = BodyMembers.schema(parameters, required: required, oneOf: oneOf, isExclusive: first.isExclusive)
        if let original = forms.first(where: \.isOriginal) {
            let names = original.parameters.map(\.name).joined(separator: ", ")
            schema.set(
                "description", .string("A website whose policy is answers: website sends only \(names), for its user"))
        }
        return [
            "required": .bool(forms.allSatisfy { !$0.oneOf.isEmpty || $0.parameters.contains(where: \.isRequired) }),
            "content": ["application/json": ["schema": .object(schema)]],
        ]
    }

    // MARK: Answers

    private var responses: JSONObject {
        var responses: [(status: Int, json: JSONValue)] = route.forms.flatMap(\.answers).map { ($0.status, $0.json) }
        for problems in route.problems { responses.append((problems.status, problems.json)) }
        return JSONObject(responses.sorted { $0.status < $1.status }.map { (String($0.status), $0.json) })
    }

    /// The responses that more than one operation has: those to which no route adds a text.
    static func commonResponses(of routes: [Route]) -> JSONObject {
        var common: [String: (status: Int, json: JSONValue)] = [:]
        for problems in routes.flatMap(\.problems) where problems.texts.isEmpty {
            common[problems.name] = (problems.status, problems.response)
        }
        return JSONObject(
            common.sorted { ($0.value.status, $0.key) < ($1.value.status, $1.key) }.map { ($0.key, $0.value.json) })
    }
}

extension Answer {
    fileprivate var json: JSONValue {
        var response: JSONObject = [
            "description": .string(summary), "headers": ["Request-Id": ["$ref": "#/components/headers/RequestID"]],
        ]
        if let shape {
            response.set(
                "content", ["application/json": ["schema": .object(shape.schema), "example": shape.example]])
        } else if let contentType {
            var schema: JSONObject = ["type": "string"]
            if !contentType.hasPrefix("text/") { schema.set("format", "binary") }
            response.set("content", [contentType: ["schema": .object(schema)]])
        }
        return .object(response)
    }
}

extension StatusProblems {
    fileprivate var json: JSONValue {
        texts.isEmpty ? ["$ref": .string("#/components/responses/\(name)")] : response
    }

    /// A name for the response, such as `MalformedOrInvalid`.
    fileprivate var name: String {
        codes.map { code in
            code.rawValue.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        }.joined(separator: "Or")
    }

    fileprivate var response: JSONValue {
        let words = JSONValue.array(codes.map { .string($0.rawValue) })
        var headers: JSONObject = [
            "Request-Id": ["$ref": "#/components/headers/RequestID"],
            "Content-Language": ["$ref": "#/components/headers/ContentLanguage"],
        ]
        if [.limited, .unavailable, .conflict].contains(codes.first) {
            headers.set("Retry-After", ["$ref": "#/components/headers/RetryAfter"])
        }
        let shown = texts.first?.code ?? codes.first
        return [
            "description": .string(summary), "headers": .object(headers), "x-problem-codes": words,
            "content": [
                "application/problem+json": [
                    "schema": ["$ref": "#/components/schemas/Problem"],
                    "example": shown.map { Shape.example(of: $0, texts.first?.text) } ?? .null,
                ]
            ],
        ]
    }

    /// The codes with their texts.
    private var summary: String {
        codes.map { code in
            let own = texts.filter { $0.code == code }.map { $0.text }
            return "`\(code.rawValue)`: \(own.isEmpty ? code.title.english : own.joined(separator: "; or: "))"
        }.joined(separator: "\n\n")
    }
}

extension Form {
    fileprivate var security: [JSONValue] {
        switch action {
        case .anyone: [[:]]
        case .website: [["website": []]]
        case .phone: [["phone": []], ["proof": []]]
        }
    }
}
