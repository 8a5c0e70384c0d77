import JSON

/// The form of a JSON value in an answer: its JSON Schema for the OpenAPI document, and an example.
///
/// To clients, objects are open: a later relay may add members. The tests are stricter: an answer
/// with a member that its shape does not declare fails them.
///
/// Tests: `APITests/OpenAPITests.swift`, and each request of `APITests`, whose answer
/// `DeclaredAnswers.swift` compares with the document.
struct Shape: Sendable {
    /// The schema at the place of the value. For a named shape it refers to the component.
    private(set) var schema: JSONObject
    private(set) var example: JSONValue
    /// The schemas of the named shapes in this one, by their names.
    private(set) var components: [String: JSONObject] = [:]

    init(_ schema: JSONObject, example: JSONValue) {
        self.schema = schema
        self.example = example
    }

    static func text(_ example: String) -> Shape { Shape(["type": "string"], example: .string(example)) }

    static func integer(_ example: Int64) -> Shape { Shape(["type": "integer"], example: .integer(example)) }

    static let flag = Shape(["type": "boolean"], example: true)

    /// A flag that is left out unless it is true. A generator takes a constant of this type for a word.
    static let mark = flag

    /// The id of a user, phone, challenge or another object.
    static let id = Shape(
        ["type": "string", "pattern": "^[0-9a-f]{32}$"], example: "0191e0f4a3b27c5d8e6f102938475610")

    static let time = Shape(["type": "string", "format": "date-time"], example: "2026-12-31T23:00:00.000Z")

    static func words(_ words: [String]) -> Shape {
        Shape(
            ["type": "string", "enum": .array(words.map { .string($0) })], example: .string(words.first ?? ""))
    }

    /// A word of a fixed set, under a name of its own.
    static func word<Word: RawRepresentable<String> & CaseIterable>(_ name: String, _: Word.Type) -> Shape {
        words(Word.allCases.map(\.rawValue)).named(name)
    }

    static func list(of shape: Shape) -> Shape {
        var list = Shape(["type": "array", "items": .object(shape.schema)], example: [shape.example])
        list.components = shape.components
        return list
    }

    /// An object whose member names are not known before.
    static func map(of shape: Shape, named name: String) -> Shape {
        var map = Shape(
            ["type": "object", "additionalProperties": .object(shape.schema)],
            example: .object(JSONObject([(name, shape.example)])))
        map.components = shape.components
        return map
    }

    /// An object. A question mark at the end of a name marks a member that can be left out.
    static func object(_ members: KeyValuePairs<String, Shape>) -> Shape {
        Shape(["type": "object", "properties": [:]], example: [:]).adding(members)
    }

    /// The same object with further members. It must not have a name yet.
    func adding(_ members: KeyValuePairs<String, Shape>) -> Shape {
        var properties = schema["properties"]?.object ?? [:]
        var required = schema["required"]?.array ?? []
        var example = example.object ?? [:]
        var object = self
        for (declared, shape) in members {
            let isOptional = declared.utf8.last == UInt8(ascii: "?")
            let name = isOptional ? String(declared.dropLast()) : declared
            properties.set(name, .object(shape.schema))
            if !isOptional { required.append(.string(name)) }
            example.set(name, shape.example)
            object.components.merge(shape.components) { first, _ in first }
        }
        object.schema.set("properties", .object(properties))
        if !required.isEmpty { object.schema.set("required", .array(required)) }
        object.example = .object(example)
        return object
    }

    /// The same object, which always has only these members.
    func requiring(_ names: String...) -> Shape {
        var object = self
        object.schema.set("required", names.isEmpty ? nil : .array(names.map { .string($0) }))
        return object
    }

    /// The same shape as a component of the document, to which its places refer.
    func named(_ name: String) -> Shape {
        var shape = self
        shape.components[name] = schema
        shape.schema = ["$ref": .string("#/components/schemas/\(name)")]
        return shape
    }

    /// The same shape, or null.
    var orNull: Shape {
        var shape = self
        if let type = schema["type"] {
            shape.schema.set("type", [type, "null"])
            if let words = schema["enum"]?.array { shape.schema.set("enum", .array(words + [.null])) }
        } else {
            shape.schema = ["oneOf": [.object(schema), ["type": "null"]]]
        }
        return shape
    }

    /// The same shape with a text about its meaning.
    func about(_ summary: String) -> Shape {
        var shape = self
        shape.schema.set("description", .string(summary))
        return shape
    }

    /// The same object with an example that leaves these members out.
    func showing(without names: String...) -> Shape {
        let members = (example.object ?? [:]).members.filter { !names.contains($0.name) }
        return showing(.object(JSONObject(distinct: members)))
    }

    /// The same shape with another example.
    func showing(_ example: JSONValue) -> Shape {
        var shape = self
        shape.example = example
        return shape
    }
}
