/// The languages that need no file, written as the files of others are.
public enum BuiltIn {
    static let files = [
        CatalogFile(path: "built-in/en.po", bytes: Array(english.utf8)),
        CatalogFile(path: "built-in/de.po", bytes: Array(german.utf8)),
    ]

    /// As a file, to begin another language with; nil if there is none.
    public static func text(of language: String) -> String? {
        ["en": english, "de": german][language.lowercased()]
    }
}
