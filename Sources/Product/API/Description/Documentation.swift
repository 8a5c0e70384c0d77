import Domain
import JSON
import Relay

/// The description of the API for programs. It depends on the origin only by one
/// member, so it is built once for a process, and every answer shares its bytes.
struct Documentation: Sendable {
    /// The OpenAPI document, with the server at this origin.
    let document: [UInt8]

    init(origin: String) {
        let servers = JSONWriter.write(["servers": [["url": .string(origin)]]] as JSONObject)
        document = servers.dropLast() + [UInt8(ascii: ",")] + Self.common.dropFirst()
    }

    private static let common = JSONWriter.write(OpenAPIDocument.document(of: API.table.routes, origin: nil))

    static let routes = [
        Route(
            "showOpenAPI", "GET", "/openapi.json", "Returns this document",
            Form(
                .anyone { call async throws(Refusal) in
                    .answer(APIResponse(status: 200, body: call.api.documentation.document))
                },
                answers: [Answer(200, "OpenAPI 3.1", Shape(["type": "object"], example: ["openapi": "3.1.0"]))]))
    ]
}
