import Domain
import HTTP
import JSON
import Relay

extension Form {
    /// Reads the body and the custom header fields into one object. All its members are valid, or
    /// the thrown problem names all faults. A missing body is an empty object.
    func read(_ request: Request, pathParameters: [String: String], method: String) throws(Problem) -> JSONObject {
        var object = JSONObject()
        if !request.body.isEmpty {
            guard ["POST", "PATCH"].contains(method) else {
                throw Problem(
                    .malformed,
                    LocalizedText(
                        "A \(method) request must not have a body",
                        de: "Eine Anfrage mit \(method) darf keinen Body haben"))
            }
            object = try Self.object(request)
        }
        var faults: [FieldFault] = []
        for name in Self.headerFields
        where pathParameters[name] != nil || parameters.contains(where: { $0.name == name }) {
            adopt(name, request.fields.values(name), pathParameters: pathParameters, into: &object, &faults)
        }
        BodyMembers.check(object, parameters, oneOf: oneOf, isExclusive: isExclusive, &faults)
        guard faults.isEmpty else { throw .invalid(faults) }
        return object
    }

    /// The custom header fields: those of the original form, and that of a request without a body.
    /// A form reads only those that are parameters of its own.
    private static let headerFields = ["token", "username", Parameters.nonce.name]

    /// Adopts a custom header field. It counts if the body has no value, and must not contradict
    /// the body or path.
    private func adopt(
        _ name: String, _ values: [String], pathParameters: [String: String], into object: inout JSONObject,
        _ faults: inout [FieldFault]
    ) {
        guard let value = values.first else { return }
        guard values.count == 1 else {
            faults.append(
                FieldFault(
                    name, .mismatch,
                    LocalizedText("is in the header more than once", de: "steht mehr als einmal im Header")))
            return
        }
        let said: JSONValue?
        if let place = pathParameters[name] {
            said = .string(place)
        } else {
            said = object[name]
            if said == nil { object.set(name, .string(value)) }
        }
        if let said, said.string.map({ $0.utf8.elementsEqual(value.utf8) }) != true {
            faults.append(
                FieldFault(
                    name, .mismatch,
                    LocalizedText(
                        "differs between the header and the body or path",
                        de: "hat im Header einen anderen Wert als im Body oder Pfad")))
        }
    }

    private static let limits = JSONLimits(maxDepth: 8)

    private static func object(_ request: Request) throws(Problem) -> JSONObject {
        let types = request.fields.values("content-type")
        guard types.count == 1, let type = types.first, isJSON(type), request.fields["content-encoding"] == nil else {
            throw Problem(
                .unsupportedType,
                LocalizedText(
                    "Send the body uncompressed, with content-type: application/json",
                    de: "Senden Sie den Body unkomprimiert, mit content-type: application/json"))
        }
        let value: JSONValue
        do {
            value = try JSONReader.read(request.body, limits: limits)
        } catch {
            let fault = error.text
            throw Problem(
                .malformed,
                LocalizedText(
                    "The body is not valid I-JSON (RFC 7493): \(fault.english)",
                    de: "Der Body ist kein gültiges I-JSON (RFC 7493): \(fault.german)"))
        }
        guard let object = value.object else {
            throw Problem(
                .malformed,
                LocalizedText("The body must be a JSON object", de: "Der Body muss ein JSON-Objekt sein"))
        }
        return object
    }

    /// Whether the content type is JSON. It may have parameters; a `charset` must be UTF-8, the
    /// encoding of JSON.
    static func isJSON(_ type: String) -> Bool {
        // The fields of nearly every request.
        if type == "application/json" { return true }
        let parts = type.lowercased().split(separator: ";", omittingEmptySubsequences: false).map(\.trimmed)
        guard parts[0] == "application/json" else { return false }
        return parts.dropFirst().allSatisfy { parameter in
            let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.trimmed }
            return pair.count < 2 || pair[0] != "charset" || pair[1] == "utf-8" || pair[1] == "\"utf-8\""
        }
    }
}
