import JSON
import World

/// Compares a JSON value with a schema of the OpenAPI document, for the part of JSON Schema that the
/// document uses. A keyword that it does not know is a fault, too.
///
/// - Parameter isClosed: whether an object may have only the members that its schema names. The
///   relay's own answers are checked so, although clients must accept further members.
struct JSONSchemaCheck {
    let components: JSONObject
    var isClosed = true

    /// The faults of the value, each with the place.
    func faults(_ value: JSONValue, _ schema: JSONObject, at place: String = "$") -> [String] {
        var faults: [String] = []
        for (name, rule) in schema.members.map({ ($0.name, $0.value) }) {
            switch name {
            case "description", "examples", "format": break
            case "$ref": faults += self.faults(value, target(rule), at: place)
            case "type": if !isType(value, rule) { faults.append("\(place) is no \(JSONWriter.text(rule))") }
            case "const": if value != rule { faults.append("\(place) is not \(JSONWriter.text(rule))") }
            case "enum":
                if rule.array?.contains(value) != true {
                    faults.append("\(place) is \(JSONWriter.text(value)), none of \(JSONWriter.text(rule))")
                }
            case "oneOf", "anyOf":
                let choices = (rule.array ?? []).compactMap(\.object)
                let fitting = choices.count { self.faults(value, $0, at: place).isEmpty }
                if fitting == 0 || (name == "oneOf" && fitting > 1) {
                    faults.append("\(place) fits \(fitting) choices")
                }
            case "not":
                let open = JSONSchemaCheck(components: components, isClosed: false)
                if open.faults(value, rule.object ?? [:], at: place).isEmpty {
                    faults.append("\(place) fits what it must not")
                }
            case "minLength", "maxLength", "pattern": faults += text(value, name, rule, at: place)
            case "minimum":
                if let number = value.integer, number < rule.integer ?? .max { faults.append("\(place) is low") }
            case "maximum":
                if let number = value.integer, number > rule.integer ?? .min { faults.append("\(place) is high") }
            case "multipleOf":
                if let number = value.integer, let unit = rule.integer, !number.isMultiple(of: unit) {
                    faults.append("\(place) is no multiple of \(unit)")
                }
            case "items", "maxItems", "minItems": faults += list(value, name, rule, at: place)
            case "properties", "required", "additionalProperties": break
            default: faults.append("\(place): the check does not know \(name)")
            }
        }
        if let object = value.object { faults += members(object, schema, at: place) }
        if schema["format"] == "date-time", let text = value.string, Timestamp(rfc3339: text) == nil {
            faults.append("\(place) is no time")
        }
        return faults
    }

    private func target(_ reference: JSONValue) -> JSONObject {
        let name = reference.string?.split(separator: "/").last.map(String.init) ?? ""
        return components["schemas"]?.object?[name]?.object ?? ["const": .string("the reference to \(name)")]
    }

    private func isType(_ value: JSONValue, _ rule: JSONValue) -> Bool {
        (rule.array ?? [rule]).contains { type in
            switch type.string {
            case "string": value.string != nil
            case "integer": value.number.flatMap { Int64(exactly: $0) } != nil
            case "boolean": value.bool != nil
            case "null": value.isNull
            case "array": value.array != nil
            case "object": value.object != nil
            default: false
            }
        }
    }

    private func text(_ value: JSONValue, _ name: String, _ rule: JSONValue, at place: String) -> [String] {
        guard let text = value.string else { return [] }
        let length = Int64(text.unicodeScalars.count)
        switch name {
        case "minLength": return length < rule.integer ?? 0 ? ["\(place) is too short"] : []
        case "maxLength": return length > rule.integer ?? 0 ? ["\(place) is too long"] : []
        default:
            guard let pattern = rule.string, let regex = try? Regex(pattern).matchingSemantics(.unicodeScalar) else {
                return ["\(place): the pattern \(JSONWriter.text(rule)) is none"]
            }
            return text.contains(regex) ? [] : ["\(place) is \(text), and does not match \(pattern)"]
        }
    }

    private func list(_ value: JSONValue, _ name: String, _ rule: JSONValue, at place: String) -> [String] {
        guard let items = value.array else { return [] }
        switch name {
        case "minItems": return Int64(items.count) < rule.integer ?? 0 ? ["\(place) has too few items"] : []
        case "maxItems": return Int64(items.count) > rule.integer ?? 0 ? ["\(place) has too many items"] : []
        default:
            return items.enumerated().flatMap { faults($0.element, rule.object ?? [:], at: "\(place)[\($0.offset)]") }
        }
    }

    private func members(_ object: JSONObject, _ schema: JSONObject, at place: String) -> [String] {
        var faults = (schema["required"]?.array ?? []).compactMap(\.string).filter { object[$0] == nil }
            .map { "\(place).\($0) is missing" }
        let declared = schema["properties"]?.object
        for member in object.members {
            if let own = declared?[member.name]?.object {
                faults += self.faults(member.value, own, at: "\(place).\(member.name)")
            } else if let rest = schema["additionalProperties"]?.object {
                faults += self.faults(member.value, rest, at: "\(place).\(member.name)")
            } else if schema["$ref"] == nil, declared != nil, isClosed || schema["additionalProperties"] == false {
                faults.append("\(place).\(member.name) is not declared")
            }
        }
        return faults
    }
}
