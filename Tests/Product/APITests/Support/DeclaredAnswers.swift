import HTTP
import JSON
import TestSupport
import Testing

@testable import API

/// Compares answers with the OpenAPI document: each must have a status of its operation, with a body of
/// the declared type and schema, and without members that are not declared. The body of a request that
/// succeeded must fit its schema, too.
enum DeclaredAnswers {
    static let document = OpenAPIDocument.document(of: API.table.routes, origin: RelayRig.origin)
    private static let components = document["components"]?.object ?? [:]

    /// Returns the outcome. A held request is checked when it is answered.
    static func checked(_ outcome: Outcome, of request: Request) -> Outcome {
        switch outcome {
        case .response(let response):
            let faults = faults(of: response, to: request)
            if !faults.isEmpty {
                Issue.record("\(request.method) \(request.path): \(response.status) \(response.text): \(faults)")
            }
            return outcome
        case .held(let hold):
            // A held request keeps nothing of the request that its answer does not need.
            let (method, path) = (request.method, request.path)
            return .held(
                Hold(duration: hold.duration, owner: hold.owner, wait: hold.wait) {
                    checked(await hold.finish(), of: Request(method: method, path: path))
                })
        }
    }

    static func faults(of response: Response, to request: Request) -> [String] {
        guard case .route(let route, _) = API.table.match(request.method, request.path) else {
            return faults(response, ["$ref": "#/components/schemas/Problem"])
        }
        let path = document["paths"]?.object?[route.path.text]?.object
        let operation = path?[route.method.lowercased()]?.object ?? [:]
        guard let declared = operation["responses"]?.object?[String(response.status)]?.object else {
            return ["the status is not declared"]
        }
        var faults: [String] = []
        // The header fields of the original form may stand in for members of the body.
        let isComplete = ["token", "username"].allSatisfy { request.fields[$0] == nil }
        if response.status < 300, !request.body.isEmpty, isComplete { faults += sent(request, operation) }
        let known = resolved(declared)
        if let codes = known["x-problem-codes"]?.array, !codes.contains(response["code"] ?? .null) {
            faults.append("the code is not declared")
        }
        let content = known["content"]?.object ?? [:]
        guard let type = response.fields["content-type"] else {
            return content.isEmpty && response.body.isEmpty ? faults : faults + ["a body is declared"]
        }
        guard let schema = content[type]?.object?["schema"]?.object else { return faults + ["\(type) is not declared"] }
        return type.hasSuffix("json") ? faults + self.faults(response, schema) : faults
    }

    private static func resolved(_ response: JSONObject) -> JSONObject {
        guard let name = response["$ref"]?.string?.split(separator: "/").last else { return response }
        return components["responses"]?.object?[String(name)]?.object ?? [:]
    }

    private static func faults(_ response: Response, _ schema: JSONObject) -> [String] {
        let limits = JSONLimits(maxDepth: 32, maxMembers: 1024)
        guard let value = try? JSONReader.read(response.body, limits: limits) else { return ["the body is no JSON"] }
        return JSONSchemaCheck(components: components).faults(value, schema)
    }

    private static func sent(_ request: Request, _ operation: JSONObject) -> [String] {
        let content = operation["requestBody"]?.object?["content"]?.object?["application/json"]?.object
        guard let schema = content?["schema"]?.object else { return ["no body is declared"] }
        guard let value = try? JSONReader.read(request.body) else { return ["the body of the request is no JSON"] }
        return JSONSchemaCheck(components: components, isClosed: false).faults(value, schema, at: "request")
    }
}
