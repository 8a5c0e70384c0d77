import Domain
import HTTP
import JSON
import TestSupport
import Testing

@testable import API

struct OpenAPITests {
    private let document = DeclaredAnswers.document

    private var operations: [(route: Route, json: JSONObject)] {
        API.table.routes.map { route in
            let path = document["paths"]?.object?[route.path.text]?.object
            return (route, path?[route.method.lowercased()]?.object ?? [:])
        }
    }

    @Test func relayServesTheDocumentOfItsOrigin() async throws {
        let rig = try await APIRig()
        let response = await rig.stranger.send("GET", "/openapi.json")
        #expect(response.status == 200)
        let limits = JSONLimits(maxDepth: 32, maxMembers: 1024)
        #expect(try JSONReader.read(response.body, limits: limits) == .object(document))
        #expect(document["openapi"] == "3.1.0")
        #expect(document["servers"] == [["url": .string(RelayRig.origin)]])
    }

    @Test func everyOperationHasAUniqueNameAndAnswersWithExamples() {
        var names: Set<String> = []
        for (route, operation) in operations {
            #expect(operation["summary"]?.string == route.summary, "\(route.method) \(route.path.text)")
            let name = operation["operationId"]?.string ?? ""
            #expect(names.insert(name).inserted, "\(name) is not unique")
            #expect(name.first?.isLowercase == true && name.allSatisfy { $0.isASCII && $0.isLetter }, "\(name)")
            let responses = operation["responses"]?.object ?? [:]
            #expect(responses.names.contains { $0.hasPrefix("2") }, "\(name)")
            #expect(responses["default"] == nil, "\(name)")
            for response in responses.members where response.value.object?["$ref"] == nil {
                #expect(response.value.object?["description"]?.string?.isEmpty == false, "\(name) \(response.name)")
                for content in (response.value.object?["content"]?.object ?? [:]).members
                where content.name.hasSuffix("json") {
                    #expect(content.value.object?["example"] != nil, "\(name) \(response.name)")
                }
            }
            let parameters = operation["parameters"]?.array ?? []
            for language in ["AcceptLanguage", "AcceptUserLanguage"] {
                #expect(parameters.contains(["$ref": .string("#/components/parameters/\(language)")]))
            }
        }
    }

    /// An example that does not fit its own schema misleads whoever copies it.
    @Test func everyExampleFitsItsSchema() {
        let check = JSONSchemaCheck(components: document["components"]?.object ?? [:])
        let common = document["components"]?.object?["responses"]?.object ?? [:]
        let all = common.members + operations.flatMap { ($0.json["responses"]?.object ?? [:]).members }
        var count = 0
        for response in all {
            for content in (response.value.object?["content"]?.object ?? [:]).members {
                guard let schema = content.value.object?["schema"]?.object,
                    let example = content.value.object?["example"]
                else { continue }
                count += 1
                #expect(check.faults(example, schema) == [], "\(response.name): \(JSONWriter.text(example))")
            }
        }
        #expect(count > API.table.routes.count)
    }

    @Test func bodiesArePlainObjects() {
        for (route, operation) in operations {
            let content = operation["requestBody"]?.object?["content"]?.object
            guard let schema = content?["application/json"]?.object?["schema"]?.object else { continue }
            #expect(schema["type"] == "object", "\(route.name)")
            for choice in ["anyOf", "oneOf", "allOf", "$ref"] { #expect(schema[choice] == nil, "\(route.name)") }
        }
    }

    @Test func everyReferenceHasATarget() {
        var references: Set<String> = []
        collect(.object(document), into: &references)
        for reference in references {
            let target = reference.dropFirst(2).split(separator: "/").reduce(JSONValue.object(document)) {
                value, name in
                value.object?[String(name)] ?? .null
            }
            #expect(!target.isNull, "\(reference)")
        }
        let components = document["components"]?.object ?? [:]
        for kind in ["schemas", "responses", "headers", "parameters"] {
            for name in components[kind]?.object?.names ?? [] {
                #expect(references.contains("#/components/\(kind)/\(name)"), "nothing uses \(kind) \(name)")
            }
        }
    }

    private func collect(_ value: JSONValue, into references: inout Set<String>) {
        for item in value.array ?? [] { collect(item, into: &references) }
        for member in value.object?.members ?? [] {
            if member.name == "$ref", let text = member.value.string { references.insert(text) }
            collect(member.value, into: &references)
        }
    }

    @Test func problemsAreListedByOperation() throws {
        #expect(codes("revokeDevice", 429) == ["limited"])
        #expect(codes("revokeDevice", 401) == nil)
        #expect(codes("confirmRecoveryCodes", 403) == ["forbidden", "codes_locked"])
        #expect(codes("approve", 403) == ["forbidden", "posture_unmet", "pin_required", "pin_wrong", "pin_locked"])
        #expect(codes("showUser", 404) == ["not_found", "route_not_found"])
        #expect(codes("login", 422) == ["idempotency_mismatch"])
        #expect(codes("showResult", 422) == nil)
        #expect(codes("showUser", 415) == nil)
    }

    private func codes(_ name: String, _ status: Int) -> [String]? {
        let operation = operations.first { $0.route.name == name }?.json
        guard var response = operation?["responses"]?.object?[String(status)]?.object else { return nil }
        if let common = response["$ref"]?.string?.split(separator: "/").last {
            response = document["components"]?.object?["responses"]?.object?[String(common)]?.object ?? [:]
        }
        return response["x-problem-codes"]?.array?.compactMap(\.string)
    }

    @Test func parametersAndSecurityAreThoseOfTheForms() {
        let named = Dictionary(uniqueKeysWithValues: operations.map { ($0.route.name, $0.json) })
        let body = { (name: String) in
            named[name]?["requestBody"]?.object?["content"]?.object?["application/json"]?.object?["schema"]?.object
        }
        #expect(body("register")?["required"] == ["username"])
        #expect(body("register")?["properties"]?.object?["email"]?.object?["maxLength"] == 254)
        // Both forms need the token, and only the form of phones the code.
        #expect(body("bindPhone")?["required"] == ["id_token"])
        #expect(body("login")?["not"] == ["properties": ["token": ["not": [:]], "username": ["not": [:]]]])
        let absent: JSONValue = ["properties": ["username": ["not": [:]], "device": ["not": [:]]]]
        #expect(body("verifyOTP")?["not"] == ["anyOf": [absent, ["required": ["username", "device"]]]])
        #expect(named["register"]?["security"] == [["website": []]])
        #expect(named["bindPhone"]?["security"] == [[:], ["website": []]])
        #expect(named["showPIN"]?["security"] == [["phone": []], ["proof": []]])
        let fields = { (name: String) in
            named[name]?["parameters"]?.array?.compactMap { $0.object?["name"]?.string } ?? []
        }
        #expect(fields("login").contains("Idempotency-Key") && !fields("showResult").contains("Idempotency-Key"))
        #expect(fields("showResult").contains("Prefer") && fields("showTime").contains("nonce"))
        #expect(fields("showUser") == ["username"])
    }

    @Test func everyProblemHasAnErrorStatus() {
        for code in Problem.Code.allCases {
            #expect((400...599).contains(code.status))
        }
    }
}

/// The check that all tests of this module make of each answer.
struct DeclaredAnswersTests {
    private let request = Request(method: "GET", path: "/user/bob/messages")
    private let message: JSONObject = [
        "message": "0191e0f4a3b27c5d8e6f102938475610", "from": "website", "title": "a", "text": "b",
        "created_at": "2026-12-31T23:00:00.000Z", "read_at": .null,
    ]

    private func faults(_ body: JSONObject, status: Int = 200) -> [String] {
        let answer = APIResponse(status, body).response(to: "1")
        return DeclaredAnswers.faults(of: answer, to: request)
    }

    private func faults(_ change: (inout JSONObject) -> Void) -> [String] {
        var changed = message
        change(&changed)
        return faults(["messages": [.object(changed)]])
    }

    @Test func declaredAnswerHasNoFault() {
        #expect(faults { _ in } == [])
        #expect(faults(["messages": []]) == [])
    }

    @Test func undeclaredAnswerHasAFault() {
        #expect(faults { $0.set("colour", "red") } == ["$.messages[0].colour is not declared"])
        #expect(faults { $0.set("title", nil) } == ["$.messages[0].title is missing"])
        #expect(faults { $0.set("title", 1) } == ["$.messages[0].title is no \"string\""])
        #expect(faults { $0.set("from", "nobody") }.count == 1)
        #expect(faults { $0.set("message", "x") }.count == 1)
        #expect(faults { $0.set("read_at", "today") } == ["$.messages[0].read_at is no time"])
        #expect(faults([:], status: 201) == ["the status is not declared"])
        #expect(
            faults(Problem(.approvalRequired, LocalizedText("a", de: "b")).body(in: .english), status: 403).count == 1)
        #expect(faults(Problem(.forbidden, LocalizedText("a", de: "b")).body(in: .english), status: 403) == [])
    }
}
