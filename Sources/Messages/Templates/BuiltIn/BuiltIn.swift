/// The built-in languages, in the format of catalogue files.
public enum BuiltIn {
    static let files = [
        CatalogFile(path: "built-in/en.po", bytes: Array(english.utf8)),
        CatalogFile(path: "built-in/de.po", bytes: Array(german.utf8)),
    ]

    /// Returns the file of a built-in language as a starting point for another language; nil if
    /// there is none.
    public static func text(of language: String) -> String? {
        ["en": english, "de": german][language.lowercased()]
    }
}
