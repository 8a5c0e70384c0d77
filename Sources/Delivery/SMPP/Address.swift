/// The type of number and the numbering plan, which override those of an address.
public struct SMPPNumberKind: Sendable, Equatable {
    public var ton: UInt8?
    public var npi: UInt8?

    /// Creates a kind; a nil value is derived from the form of the number.
    public init(ton: UInt8? = nil, npi: UInt8? = nil) {
        self.ton = ton
        self.npi = npi
    }
}

/// The address of a sender or receiver: its digits or letters, type of number and numbering plan.
public struct SMPPAddress: Sendable, Equatable {
    /// The type of number (SMPP 3.4 §5.2.5); `npi` is the numbering plan (§5.2.6).
    public let ton: UInt8
    public let npi: UInt8
    public let text: String

    /// Creates an address with explicit type and plan. At most 20 ASCII characters are sent.
    public init(ton: UInt8, npi: UInt8, text: String) {
        self.ton = ton
        self.npi = npi
        self.text = text
    }

    /// Derives type and plan from the form of the text. `+49…` is international in the telephone
    /// plan. At most eight digits are a short code, more digits a national number. Any other text
    /// is a name of at most eleven characters, as phones show it. Returns nil if the text is none
    /// of these.
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

    /// Returns the same text with another type and plan.
    public func typed(_ kind: SMPPNumberKind?) -> SMPPAddress {
        SMPPAddress(ton: kind?.ton ?? ton, npi: kind?.npi ?? npi, text: text)
    }

    /// An empty address, which leaves the choice to the gateway.
    static let none = SMPPAddress(ton: 0, npi: 0, text: "")
}
