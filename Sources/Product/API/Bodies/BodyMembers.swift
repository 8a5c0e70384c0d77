import Bytes
import Domain
import JSON
import Relay

/// The check of a JSON object against its declared parameters.
enum BodyMembers {
    /// Adds a fault for every error, so that a developer sees all of them at once.
    static func check(
        _ object: JSONObject, _ parameters: [Parameter], oneOf: [String] = [], isExclusive: Bool = false,
        inside prefix: String = "", _ faults: inout [FieldFault]
    ) {
        for parameter in parameters {
            if let value = object[parameter.name] {
                parameter.check(value, prefix + parameter.name, &faults)
            } else if parameter.isRequired {
                faults.append(.missing(prefix + parameter.name))
            }
        }
        let given = oneOf.filter { object[$0] != nil }
        if isExclusive, given.count > 1 {
            faults.append(
                FieldFault(
                    prefix + given[1], .mismatch,
                    LocalizedText(
                        "must not be given beside \(given[0])", de: "darf nicht neben \(given[0]) stehen")))
        }
        if given.isEmpty, let first = oneOf.first {
            let others = oneOf.dropFirst().joined(separator: ", ")
            faults.append(
                FieldFault(
                    prefix + first, .missing,
                    LocalizedText("must be given, or \(others)", de: "fehlt; möglich ist auch \(others)")))
        }
        for name in object.names where !parameters.contains(where: { $0.isNamed(name) }) {
            guard faults.count < mostUnknown else { break }
            // A guess costs more than a refusal, so the relay does not guess for many faults or for
            // long names.
            let mayGuess = faults.count < 16 && name.utf8.count <= 32
            faults.append(unknown(name, inside: prefix, among: parameters.map(\.name), mayGuess: mayGuess))
        }
    }

    /// The largest number of faults for unknown names. A body can have thousands of them, and the
    /// answer would be many times as large.
    private static let mostUnknown = 100

    private static func unknown(_ name: String, inside prefix: String, among names: [String], mayGuess: Bool)
        -> FieldFault
    {
        let shown = String(String.UnicodeScalarView(name.unicodeScalars.prefix(64)))
        guard mayGuess, let nearest = Spelling.nearest(to: shown, among: names) else {
            return FieldFault(
                prefix + shown, .unknown,
                LocalizedText("is not a known parameter", de: "ist kein bekannter Parameter"))
        }
        return FieldFault(
            prefix + shown, .unknown,
            LocalizedText(
                "is not a known parameter; did you mean \(nearest)?",
                de: "ist kein bekannter Parameter; meinten Sie \(nearest)?"))
    }

    /// The JSON Schema of an object with these parameters.
    ///
    /// - Parameters:
    ///   - required: the names of the required parameters; nil if each parameter says so itself.
    ///   - oneOf: the parameters of which at least one must be given.
    ///   - isExclusive: whether only one of these may be given.
    static func schema(
        _ parameters: [Parameter], required: Set<String>? = nil, oneOf: [String] = [], isExclusive: Bool = false
    ) -> JSONObject {
        var properties = JSONObject()
        for parameter in parameters {
            var schema = parameter.schema
            schema.set("description", .string(parameter.summary))
            properties.set(parameter.name, .object(schema))
        }
        var object: JSONObject = [
            "type": "object", "properties": .object(properties), "additionalProperties": false,
        ]
        let needed = parameters.filter { required?.contains($0.name) ?? $0.isRequired }
        if !needed.isEmpty { object.set("required", .array(needed.map { .string($0.name) })) }
        if !oneOf.isEmpty {
            // Not one without all of them. Generators make one type from this, and several from `anyOf`.
            let absent: JSONValue = ["properties": .object(JSONObject(oneOf.map { ($0, ["not": [:]]) }))]
            let both: JSONValue = ["required": .array(oneOf.map { .string($0) })]
            object.set("not", isExclusive ? ["anyOf": [absent, both]] : absent)
        }
        return object
    }
}
