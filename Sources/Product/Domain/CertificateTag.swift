/// The purpose of a further certificate of a phone, which a website's policy names.
public struct CertificateTag: Equatable, Sendable {
    public let name: String
    /// Whether the key may sign a digest without a statement around it.
    public let isRaw: Bool

    public static let nameLimit = 32
    /// The most tags of a website, and so the most further certificates of a phone.
    public static let most = 8
    private static let raw = ":raw"

    /// Parses one tag of the policy: `sign`, or `legacy:raw`. Returns nil if the text is no tag.
    public init?(_ text: Substring) {
        isRaw = text.hasSuffix(Self.raw)
        let name = String(isRaw ? text.dropLast(Self.raw.count) : text)
        guard Self.isName(name) else { return nil }
        self.name = name
    }

    /// Whether the text is a name: lower-case letters, digits and dashes, beginning with a letter.
    public static func isName(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, bytes.count <= nameLimit, (0x61...0x7a).contains(first) else { return false }
        return bytes.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2d }
    }

    /// The tag as the policy names it.
    public var text: String { isRaw ? name + Self.raw : name }
}

extension Policy {
    /// Returns the tag with that name; nil if the policy has none.
    public func certificateTag(_ name: String) -> CertificateTag? {
        certificateTags.first { $0.name.utf8.elementsEqual(name.utf8) }
    }

    /// Parses a list of tags.
    static func tags(_ key: String, _ text: String) throws(Fault) -> [CertificateTag] {
        guard text != "none" else { return [] }
        var tags: [CertificateTag] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let word = part.drop { $0 == " " }
            guard let tag = CertificateTag(word.prefix { $0 != " " }),
                word.drop(while: { $0 != " " }).allSatisfy({ $0 == " " })
            else {
                throw Fault(
                    message: "\(key) must be none or a list of tags, such as sign or sign, legacy:raw; a tag has up to "
                        + "\(CertificateTag.nameLimit) lower-case letters, digits and dashes")
            }
            guard !tags.contains(where: { $0.name == tag.name }) else {
                throw Fault(message: "\(key) must name \(tag.name) only once")
            }
            tags.append(tag)
        }
        guard tags.count <= CertificateTag.most else {
            throw Fault(message: "\(key) must have at most \(CertificateTag.most) tags")
        }
        return tags
    }
}
