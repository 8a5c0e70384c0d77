/// Type of number and numbering plan.
public struct SMPPNumberKind: Sendable, Equatable {
    public var ton: UInt8?
    public var npi: UInt8?

    /// Nil is what the number's form says.
    public init(ton: UInt8? = nil, npi: UInt8? = nil) {
        self.ton = ton
        self.npi = npi
    }
}

/// A sender or a receiver: its digits or letters, and what kind of number they are.
public struct SMPPAddress: Sendable, Equatable {
    /// Type of number and numbering plan (SMPP 3.4 §5.2.5 and §5.2.6).
    public let ton: UInt8
    public let npi: UInt8
    public let text: String

    /// For a gateway that wants them otherwise than their form says. At most 20 characters of ASCII are sent.
    public init(ton: UInt8, npi: UInt8, text: String) {
        self.ton = ton
        self.npi = npi
        self.text = text
    }

    /// `+49…` is international, in the plan of telephones; at most eight digits are a short code, more a national number; all else
    /// a name of at most eleven characters, as phones show it. Nil: none of these.
    public init?(_ text: String) {
        let characters = Array(text.utf8)
        let isPlus = characters.first == UInt8(ascii: "+")
        let digits = isPlus ? characters.dropFirst() : characters[...]
        guard !digits.isEmpty else { return nil }
        if digits.allSatisfy({ (0x30...0x39).contains($0) }) {
            guard digits.count <= 20 else { return nil }
            let (ton, npi): (UInt8, UInt8) = isPlus ? (1, 1) : digits.count <= 8 ? (3, 0) : (2, 1)
            self.init(ton: ton, npi: npi, text: String(decoding: digits, as: UTF8.self))
            return
        }
        guard !isPlus, characters.count <= 11, characters.allSatisfy({ (0x20...0x7e).contains($0) }) else { return nil }
        self.init(ton: 5, npi: 0, text: text)
    }

    /// The same number, called something else.
    public func called(_ kind: SMPPNumberKind?) -> SMPPAddress {
        SMPPAddress(ton: kind?.ton ?? ton, npi: kind?.npi ?? npi, text: text)
    }

    /// What the gateway is to choose itself.
    static let none = SMPPAddress(ton: 0, npi: 0, text: "")
}
