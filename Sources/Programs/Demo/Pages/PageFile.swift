import HTTP

/// A page, script, style or picture that the program carries: what lies in `Assets`, as dev/embed-pages writes it here.
public struct PageFile: Sendable {
    /// As it is asked for: `/phone.js`.
    let name: String
    let type: String
    let text: String

    init(_ name: String, type: String, text: String) {
        self.name = name
        self.type = type
        self.text = text
    }
}
