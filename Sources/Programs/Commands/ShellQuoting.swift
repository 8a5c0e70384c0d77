extension String {
    /// The text as one shell word, for commands that a person copies. User names may contain any
    /// character that a website allows.
    public var asShellWord: String {
        let isPlain = utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: ".@_-+".utf8.contains(byte)
            }
        }
        return isPlain && !isEmpty
            ? self : "'\(split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
    }
}
