import HTTP

/// A page, script, style or picture in the program. `dev/embed-pages` generates these from the
/// files in `Assets`.
public struct PageFile: Sendable {
    /// The file name in its path: `phone.js` for `/phone.js`.
    let name: String
    let type: String
    let text: String

    init(_ name: String, type: String, text: String) {
        self.name = name
        self.type = type
        self.text = text
    }
}
