import HTTP
import JSON
import TestSupport
import Testing

@testable import API

struct OpenAPITests {
    @Test func everyRouteIsDescribed() async throws {
        let rig = try await APIRig()
        let response = await rig.stranger.send("GET", "/openapi.json")
        #expect(response.status == 200)
        #expect(response["openapi"] == "3.1.0")
        #expect(response["servers"] == [["url": .string(RelayRig.origin)]])
        let paths = try #require(response["paths"]?.object)
        for route in API.table.routes {
            let operation = paths[route.path.text]?.object?[route.method.lowercased()]?.object
            #expect(operation?["summary"]?.string == route.summary, "\(route.method) \(route.path.text)")
            let statuses = operation?["responses"]?.object?.names ?? []
            #expect(statuses.contains { $0.hasPrefix("2") })
            #expect(statuses.contains("default"))
            let parameters = operation?["parameters"]?.array ?? []
            for name in ["AcceptLanguage", "AcceptUserLanguage"] {
                #expect(parameters.contains(["$ref": .string("#/components/parameters/\(name)")]))
            }
        }
        let components = try #require(response["components"]?.object)
        let parameters = components["parameters"]?.object?.members.compactMap { $0.value.object?["name"]?.string }
        #expect(parameters == ["Accept-Language", "Accept-User-Language"])
        #expect(components["responses"]?.object?["Problem"]?.object?["content"] != nil)
        let register = paths["/register"]?.object?["post"]?.object
        let schema = register?["requestBody"]?.object?["content"]?.object?["application/json"]?.object?["schema"]?
            .object
        #expect(schema?["required"] == ["username"])
        #expect(schema?["properties"]?.object?["email"]?.object?["maxLength"] == 254)
        #expect(register?["security"] == [["website": []]])
        let verify = paths["/verify"]?.object?["post"]?.object
        #expect(verify?["security"] == [[:], ["website": []]])
        let revoke = paths["/revoke"]?.object?["post"]?.object
        #expect(revoke?["responses"]?.object?.names == ["204", "400", "429", "default"])
        let confirm = paths["/user/{username}/recovery-codes/confirm"]?.object?["post"]?.object?["responses"]?.object
        #expect(["200", "403", "409", "429"].allSatisfy { confirm?[$0] != nil })
        let forbidden = confirm?["403"]?.object?["description"]?.string ?? ""
        #expect(forbidden.contains("codes_locked") && forbidden.contains("forbidden"))
        let fields = { (path: String) in
            paths[path]?.object?["post"]?.object?["parameters"]?.array?.compactMap { $0.object?["name"]?.string } ?? []
        }
        #expect(fields("/login").contains("Idempotency-Key") && !fields("/auth").contains("Idempotency-Key"))
        let show = paths["/user/{username}"]?.object?["get"]?.object
        #expect(show?["parameters"]?.array?.first?.object?["in"] == "path")
    }

    @Test func everyProblemHasAnErrorStatus() {
        for code in Problem.Code.allCases {
            #expect((400...599).contains(code.status))
        }
    }
}
