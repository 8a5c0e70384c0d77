import Bytes
import JSON

/// The page at `/docs`: the OpenAPI document for people, as HTML without a script.
///
/// It has one section for each kind of caller, with an entry for each route: its parameters, answers,
/// examples and problems. The forms of answers and the common responses follow. Each text of the
/// document is escaped.
///
/// Tests: `APITests/DocsPageTests.swift`.
struct DocsPage {
    static let type = "text/html; charset=utf-8"
    static let style = """
        :root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
        code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;border:1px solid #8888;padding:.5rem}
        table{border-collapse:collapse}td,th{border:1px solid #8888;padding:.2rem .5rem;text-align:left;\
        vertical-align:top}article{border-top:1px solid #8888}summary{cursor:pointer}
        """

    let html: String

    init(of document: JSONObject) {
        let paths = document["paths"]?.object ?? [:]
        let components = document["components"]?.object ?? [:]
        let operations = paths.members.flatMap { path in
            (path.value.object ?? [:]).members.map { DocsEntry(path: path.name, method: $0.name, $0.value, components) }
        }
        let tags = (document["tags"]?.array ?? []).compactMap(\.object)
        var parts = [
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>The API of Twoefay</title>",
            "<meta name=\"viewport\" content=\"width=device-width\"><style>\(Self.style)</style></head><body>",
            "<header><h1>The API of Twoefay</h1><p>", Self.text(document["info"]?.object?["description"]),
            "</p><p>For programs: <a href=\"/openapi.json\">/openapi.json</a>.</p></header>",
            "<nav aria-label=\"Routes\">",
        ]
        for tag in tags {
            parts.append("<h2>\(Self.text(tag["description"]))</h2><ul>")
            parts += operations.filter { $0.tag == tag["name"] }.map(\.link)
            parts.append("</ul>")
        }
        parts.append("</nav><main>")
        for tag in tags {
            parts.append("<section><h2>\(Self.text(tag["description"]))</h2>")
            parts += operations.filter { $0.tag == tag["name"] }.map(\.html)
            parts.append("</section>")
        }
        parts.append("<section><h2>Forms</h2>")
        for schema in (components["schemas"]?.object ?? [:]).members {
            let name = Self.text(.string(schema.name))
            parts.append("<article id=\"form-\(name)\"><h3>\(name)</h3>\(DocsSchema.form(schema.value))</article>")
        }
        parts.append("</section></main></body></html>")
        html = parts.joined()
    }

    /// A text of the document, escaped. Text between backticks is code, and an empty line is a line
    /// break.
    static func text(_ value: JSONValue?) -> String {
        let lines = (value?.string ?? "").split(separator: "\n", omittingEmptySubsequences: true).map { line in
            Markup.escaped(String(line)).split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .map { $0.offset.isMultiple(of: 2) ? String($0.element) : "<code>\($0.element)</code>" }.joined()
        }
        return lines.joined(separator: "<br>")
    }
}

/// The entry of one operation.
struct DocsEntry {
    let path: String
    let method: String
    private let operation: JSONObject
    private let components: JSONObject

    init(path: String, method: String, _ operation: JSONValue, _ components: JSONObject) {
        self.path = path
        self.method = method.uppercased()
        self.operation = operation.object ?? [:]
        self.components = components
    }

    var tag: JSONValue? { operation["tags"]?.array?.first }

    private var id: String { DocsPage.text(operation["operationId"]) }
    private var title: String { Markup.escaped("\(method) \(path)") }

    var link: String { "<li><a href=\"#\(id)\"><code>\(title)</code></a> \(DocsPage.text(operation["summary"]))" }

    var html: String {
        var parts = [
            "<article id=\"\(id)\"><h3><code>\(title)</code></h3><p>\(DocsPage.text(operation["summary"])). ",
            "<code>\(id)</code></p>",
        ]
        // Those of every operation are explained once.
        let fields = (operation["parameters"]?.array ?? []).compactMap(\.object).filter { $0["$ref"] == nil }
        if !fields.isEmpty {
            let rows = fields.map { field in
                let place = field["in"]?.string ?? ""
                return DocsSchema.row(
                    field["name"], isRequired: field["required"]?.bool == true, field["schema"] ?? .null,
                    "\(DocsPage.text(field["description"])) (\(place))")
            }
            parts.append(DocsSchema.table("Path and header", rows))
        }
        if let body = content(operation["requestBody"]?.object)?.schema {
            parts.append("<h4>Body</h4>\(DocsSchema.form(.object(body)))")
        }
        parts.append("<h4>Answers</h4><dl>")
        for response in (operation["responses"]?.object ?? [:]).members {
            parts.append("<dt><code>\(Markup.escaped(response.name))</code><dd>\(answer(resolved(response.value)))")
        }
        parts.append("</dl></article>")
        return parts.joined()
    }

    private func answer(_ response: JSONObject) -> String {
        var parts = [DocsPage.text(response["description"])]
        guard let content = content(response) else { return parts[0] }
        // The examples of problems all look the same: the form `Problem` has one.
        if content.type == "application/json", let schema = content.schema {
            parts.append(" \(DocsSchema.kind(.object(schema)))")
            if let example = content.example {
                parts.append(
                    "<details><summary>Example</summary><pre>\(Markup.escaped(JSONWriter.text(example)))</pre></details>"
                )
            }
        } else if content.type != "application/problem+json" {
            parts.append(" <code>\(Markup.escaped(content.type))</code>")
        }
        return parts.joined()
    }

    private func resolved(_ response: JSONValue) -> JSONObject {
        let object = response.object ?? [:]
        guard let reference = object["$ref"]?.string, let name = reference.split(separator: "/").last else {
            return object
        }
        return components["responses"]?.object?[String(name)]?.object ?? [:]
    }

    private func content(_ holder: JSONObject?) -> (type: String, schema: JSONObject?, example: JSONValue?)? {
        guard let content = holder?["content"]?.object?.members.first else { return nil }
        return (content.name, content.value.object?["schema"]?.object, content.value.object?["example"])
    }
}

/// The HTML of JSON Schemas.
enum DocsSchema {
    /// An object as a table of its members; another schema as its kind.
    static func form(_ schema: JSONValue) -> String {
        let object = schema.object ?? [:]
        let about = DocsPage.text(object["description"])
        let head = about.isEmpty ? "" : "<p>\(about)</p>"
        guard let members = object["properties"]?.object?.members else { return head + "<p>\(kind(schema))</p>" }
        let required = object["required"]?.array ?? []
        let rows = members.map { member in
            row(
                .string(member.name), isRequired: required.contains(.string(member.name)), member.value,
                DocsPage.text(member.value.object?["description"]))
        }
        return head + table("Members", rows) + choice(object)
    }

    /// The members of which at least one, or exactly one, must be given.
    private static func choice(_ schema: JSONObject) -> String {
        let forbidden = schema["not"]?.object
        let absent = forbidden?["anyOf"]?.array?.first?.object ?? forbidden
        guard let names = absent?["properties"]?.object?.names else { return "" }
        let number = forbidden?["anyOf"] == nil ? "At least" : "Exactly"
        return "<p>\(number) one of \(names.map { "<code>\(Markup.escaped($0))</code>" }.joined(separator: ", ")).</p>"
    }

    static func table(_ caption: String, _ rows: [String]) -> String {
        "<table><caption>\(caption)</caption><tr><th>Name<th>Value<th>Meaning\(rows.joined())</table>"
    }

    static func row(_ name: JSONValue?, isRequired: Bool, _ schema: JSONValue, _ about: String) -> String {
        let mark = isRequired ? "" : "?"
        return "<tr><td><code>\(Markup.escaped(name?.string ?? ""))\(mark)</code><td>\(kind(schema))<td>\(about)"
    }

    /// The kind of a value in a few words.
    static func kind(_ schema: JSONValue) -> String {
        let object = schema.object ?? [:]
        if let name = object["$ref"]?.string?.split(separator: "/").last {
            let text = Markup.escaped(String(name))
            return "<a href=\"#form-\(text)\">\(text)</a>"
        }
        if let choices = (object["oneOf"] ?? object["anyOf"])?.array {
            return choices.map(kind).joined(separator: " or ")
        }
        if let words = object["enum"]?.array {
            return words.map { "<code>\(Markup.escaped(JSONWriter.text($0)))</code>" }.joined(separator: ", ")
        }
        if let items = object["items"] { return "list of \(kind(items))" }
        if let members = object["properties"]?.object?.names, !members.isEmpty {
            return "{\(members.map { Markup.escaped($0) }.joined(separator: ", "))}"
        }
        let types = object["type"]?.array?.compactMap(\.string) ?? [object["type"]?.string ?? "any"]
        return Markup.escaped(([types.joined(separator: " or ")] + limits(object)).joined(separator: ", "))
    }

    private static func limits(_ schema: JSONObject) -> [String] {
        var limits: [String] = []
        if let format = schema["format"]?.string { limits.append(format) }
        if let most = schema["maxLength"]?.integer { limits.append("at most \(most) characters") }
        if let low = schema["minimum"]?.integer, let high = schema["maximum"]?.integer {
            limits.append("\(low) to \(high)")
        }
        return limits
    }
}
