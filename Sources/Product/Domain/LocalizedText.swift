/// The languages of the texts in the API's answers, by their language tags.
public enum TextLanguage: String, Sendable, CaseIterable {
    case english = "en"
    case german = "de"
}

/// A text for people in every language of the API. The translations stand beside each other where
/// the text is used, so that nobody changes one without the other. `dev/check` compares them: none
/// may be missing, and all must show the same values.
public struct LocalizedText: Sendable, Equatable, CustomStringConvertible {
    public let english: String
    public let german: String

    public init(_ english: String, de german: String) {
        self.english = english
        self.german = german
    }

    public func text(in language: TextLanguage) -> String {
        switch language {
        case .english: english
        case .german: german
        }
    }

    /// The English text, for the log and the operator's tools.
    public var description: String { english }
}
