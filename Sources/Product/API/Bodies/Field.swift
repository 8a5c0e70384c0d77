import Bytes
import Domain
import JSON
import Relay
import World

/// A parameter of a body, declared once. The declaration defines how the parameter is read, which
/// faults it can have, and how OpenAPI describes it.
final class Field<Value: Sendable>: Sendable {
    let name: String
    let summary: String
    /// The JSON Schema.
    let schema: JSONObject
    /// Reads the value; returns nil after it has added at least one fault.
    let read: @Sendable (JSONValue, _ parameter: String, inout [FieldFault]) -> Value?

    init(
        name: String, summary: String, schema: JSONObject,
        read: @escaping @Sendable (JSONValue, _ parameter: String, inout [FieldFault]) -> Value?
    ) {
        self.name = name
        self.summary = summary
        self.schema = schema
        self.read = read
    }

    /// The same field, which also accepts null to delete the stored value.
    var orNull: Field<Value?> {
        var schema = schema
        schema.set("type", .array([schema["type"] ?? "string", "null"]))
        return Field<Value?>(name: name, summary: "\(summary); null deletes it", schema: schema) {
            [read] value, parameter, faults in
            if value == .null { return .some(nil) }
            return read(value, parameter, &faults).map { .some($0) }
        }
    }

    var required: Parameter { Parameter(self, isRequired: true) }
    var optional: Parameter { Parameter(self, isRequired: false) }
}

private let mustBeString = LocalizedText("must be a string", de: "muss ein String sein")

/// A field without its static type.
final class Parameter: Sendable {
    let name: String
    let summary: String
    let schema: JSONObject
    let isRequired: Bool
    let check: @Sendable (JSONValue, _ parameter: String, inout [FieldFault]) -> Void

    init<Value>(_ field: Field<Value>, isRequired: Bool) {
        name = field.name
        summary = field.summary
        schema = field.schema
        self.isRequired = isRequired
        check = { value, parameter, faults in _ = field.read(value, parameter, &faults) }
    }

    func isNamed(_ other: String) -> Bool { name.hasSameBytes(as: other) }
}

extension Field where Value == String {
    /// A text of up to `limit` characters that the rule accepts. The rule returns the message of a
    /// fault, or nil.
    static func text(
        _ name: String, limit: Int, mayBeEmpty: Bool = false, _ summary: String,
        rule: @escaping @Sendable (String) -> LocalizedText?
    ) -> Field {
        Field(
            name: name, summary: summary,
            schema: ["type": "string", "minLength": mayBeEmpty ? 0 : 1, "maxLength": .integer(Int64(limit))]
        ) { value, parameter, faults in
            guard let text = value.string else {
                faults.append(FieldFault(parameter, .type, mustBeString))
                return nil
            }
            if text.isEmpty, !mayBeEmpty {
                faults.append(FieldFault(parameter, .length, FieldRule.empty))
            } else if text.utf8.count > limit, text.unicodeScalars.count > limit {
                faults.append(FieldFault(parameter, .length, FieldRule.tooLong(limit)))
            } else if let complaint = rule(text) {
                faults.append(FieldFault(parameter, .format, complaint))
            } else {
                return text
            }
            return nil
        }
    }

    /// A text that the verb checks itself. Its length is limited only by the body.
    static func plain(_ name: String, _ summary: String) -> Field {
        Field(name: name, summary: summary, schema: ["type": "string", "pattern": .string(FieldPattern.any)]) {
            value, parameter, faults in
            if value.string == nil { faults.append(FieldFault(parameter, .type, mustBeString)) }
            return value.string
        }
    }

    /// A line of text that is shown to a person.
    static func line(_ name: String, limit: Int, _ summary: String) -> Field {
        text(name, limit: limit, summary) { FieldRule.line($0, limit: limit) }.like(FieldPattern.line)
    }

    /// An opaque text, such as an id, a token or a signed object.
    static func opaque(_ name: String, limit: Int, mayBeEmpty: Bool = false, _ summary: String) -> Field {
        text(name, limit: limit, mayBeEmpty: mayBeEmpty, summary) { text in
            text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
                ? nil
                : LocalizedText("must be visible ASCII characters", de: "muss aus sichtbaren ASCII-Zeichen bestehen")
        }.like(FieldPattern.opaque)
    }

    /// An id, which the verb reads with `VerbCall.id`.
    static func id(_ name: String, _ summary: String) -> Field {
        opaque(name, limit: 128, summary).like(FieldPattern.id)
    }

    /// ASCII digits, exactly as typed: nothing is trimmed, and digits of other scripts are refused.
    static func digits(_ name: String, _ counts: ClosedRange<Int>, _ summary: String) -> Field {
        text(name, limit: counts.upperBound, summary) { text in
            text.utf8.count >= counts.lowerBound && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
                ? nil
                : LocalizedText(
                    "must be \(counts.lowerBound) to \(counts.upperBound) digits",
                    de: "muss aus \(counts.lowerBound) bis \(counts.upperBound) Ziffern bestehen")
        }.like(FieldPattern.digits(counts))
    }
}

extension Field where Value: RawRepresentable<String> & CaseIterable {
    /// A word of a fixed set.
    ///
    /// - Parameter choices: the accepted values; nil for all.
    static func word(_ name: String, _ summary: String, of choices: [Value]? = nil) -> Field {
        let words = (choices ?? Array(Value.allCases)).map(\.rawValue)
        return Field(
            name: name, summary: summary, schema: ["type": "string", "enum": .array(words.map { .string($0) })]
        ) { value, parameter, faults in
            guard let text = value.string else {
                faults.append(FieldFault(parameter, .type, mustBeString))
                return nil
            }
            guard words.contains(text), let word = Value(rawValue: text) else {
                let list = words.joined(separator: ", ")
                faults.append(
                    FieldFault(
                        parameter, .format,
                        LocalizedText("must be one of \(list)", de: "muss einer dieser Werte sein: \(list)")))
                return nil
            }
            return word
        }
    }
}

extension Field where Value == Bool {
    static func flag(_ name: String, _ summary: String) -> Field {
        Field(name: name, summary: summary, schema: ["type": "boolean"]) { value, parameter, faults in
            guard case .bool(let flag) = value else {
                faults.append(
                    FieldFault(
                        parameter, .type, LocalizedText("must be true or false", de: "muss true oder false sein")))
                return nil
            }
            return flag
        }
    }
}

extension Field where Value == JSONValue {
    /// An object that the verb reads itself: the members only describe what callers send. Its size is
    /// limited only by the body.
    static func object(_ name: String, _ summary: String, of members: JSONObject, required: [String]) -> Field {
        let schema: JSONObject = [
            "type": "object", "properties": .object(members), "additionalProperties": false,
            "required": .array(required.map { .string($0) }),
        ]
        return Field(name: name, summary: summary, schema: schema) { value, parameter, faults in
            guard value.object != nil else {
                faults.append(
                    FieldFault(parameter, .type, LocalizedText("must be an object", de: "muss ein Objekt sein")))
                return nil
            }
            return value
        }
    }
}

extension Field where Value == Timestamp {
    /// A time in UTC, as RFC 3339 writes it.
    static func time(_ name: String, _ summary: String) -> Field {
        let schema: JSONObject = [
            "type": "string", "format": "date-time", "pattern": .string(FieldPattern.time),
            "not": ["type": "string", "pattern": .string(FieldPattern.lastDay)],
        ]
        return Field(name: name, summary: summary, schema: schema) { value, parameter, faults in
            guard let text = value.string else {
                faults.append(FieldFault(parameter, .type, mustBeString))
                return nil
            }
            guard let time = Timestamp(rfc3339: text), Timestamp.choosable.contains(time) else {
                faults.append(
                    FieldFault(
                        parameter, .format,
                        LocalizedText(
                            "must be a time in UTC such as 2026-12-31T23:00:00Z",
                            de: "muss eine Zeit in UTC wie 2026-12-31T23:00:00Z sein")))
                return nil
            }
            return time
        }
    }
}

extension JSONValue {
    /// The value of a number without a fraction, which may be written as 6.0: JSON Schema has no
    /// difference between the two, and PHP writes a float so.
    fileprivate var wholeNumber: Int64? { integer ?? number.flatMap { Int64(exactly: $0) } }
}

extension Field where Value == Int {
    static func integer(_ name: String, _ range: ClosedRange<Int>, _ summary: String) -> Field {
        let (low, high) = (range.lowerBound, range.upperBound)
        return Field(
            name: name, summary: summary,
            schema: ["type": "integer", "minimum": .integer(Int64(low)), "maximum": .integer(Int64(high))]
        ) { value, parameter, faults in
            guard let number = value.wholeNumber else {
                faults.append(
                    FieldFault(
                        parameter, .type, LocalizedText("must be a whole number", de: "muss eine ganze Zahl sein")))
                return nil
            }
            guard let number = Int(exactly: number), range.contains(number) else {
                faults.append(
                    FieldFault(
                        parameter, .format,
                        LocalizedText("must be from \(low) to \(high)", de: "muss zwischen \(low) und \(high) liegen")))
                return nil
            }
            return number
        }
    }
}

extension Field {
    /// A list of objects with these parameters.
    static func list<Element: Sendable>(
        _ name: String, limit: Int, _ summary: String, of parameters: [Parameter],
        make: @escaping @Sendable (JSONObject) -> Element?
    ) -> Field where Value == [Element] {
        array(name, limit: limit, summary, items: BodyMembers.schema(parameters)) { value, place, faults in
            guard let object = value.object else {
                faults.append(
                    FieldFault(place, .type, LocalizedText("must be an object", de: "muss ein Objekt sein")))
                return nil
            }
            BodyMembers.check(object, parameters, inside: "\(place).", &faults)
            return make(object)
        }
    }

    /// A list of values that are each read by the same field.
    static func values<Element: Sendable>(
        _ name: String, limit: Int, _ summary: String, of field: Field<Element>
    ) -> Field where Value == [Element] {
        array(name, limit: limit, summary, items: field.schema, read: field.read)
    }

    private static func array<Element: Sendable>(
        _ name: String, limit: Int, _ summary: String, items: JSONObject,
        read: @escaping @Sendable (JSONValue, String, inout [FieldFault]) -> Element?
    ) -> Field where Value == [Element] {
        Field(
            name: name, summary: summary,
            schema: ["type": "array", "maxItems": .integer(Int64(limit)), "items": .object(items)]
        ) { value, parameter, faults in
            guard let values = value.array else {
                faults.append(
                    FieldFault(parameter, .type, LocalizedText("must be a list", de: "muss eine Liste sein")))
                return nil
            }
            guard values.count <= limit else {
                faults.append(
                    FieldFault(
                        parameter, .length,
                        LocalizedText(
                            "must have at most \(limit) items", de: "darf höchstens \(limit) Einträge haben")))
                return nil
            }
            let before = faults.count
            var elements: [Element] = []
            for (index, value) in values.enumerated() {
                if let element = read(value, "\(parameter)[\(index)]", &faults) { elements.append(element) }
            }
            return faults.count == before && elements.count == values.count ? elements : nil
        }
    }
}
