import Templates

/// The languages that a request asks for, each as a language tag or a whole Accept-Language value.
public struct RequestedLanguages: Sendable, Equatable {
    /// The person's own choice.
    public let chosen: String?
    /// The preference of the browser or the system.
    public let accepted: String?

    public init(chosen: String? = nil, accepted: String? = nil) {
        self.chosen = chosen
        self.accepted = accepted
    }

    public static let none = RequestedLanguages()

    /// The most bytes that the store has for languages.
    private static let longest = 256

    /// Returns the languages of messages to a user as a list of tags, best first: the person's
    /// choice of now, then the language that the website stored for the user, then what the browser
    /// prefers. A choice that the relay has no texts for thus leads to the next one. Returns nil if
    /// there is none.
    public func message(stored: String?) -> String? {
        var list = ""
        var known: Set<String> = []
        for tag in [chosen, stored, accepted].compactMap({ $0 }).flatMap({ LanguagePreference.tags($0) })
        where known.insert(tag).inserted {
            let longer = list.isEmpty ? tag : "\(list),\(tag)"
            guard longer.utf8.count <= Self.longest else { break }
            list = longer
        }
        return list.isEmpty ? nil : list
    }

    /// The same languages for somebody who speaks for the person without having proved it. They
    /// yield to the language that the website stored.
    public var unproved: RequestedLanguages { RequestedLanguages(accepted: chosen ?? accepted) }
}
