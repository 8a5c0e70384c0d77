/// The status of a response (SMPP 3.4 §5.1.3).
public struct SMPPStatus: Sendable, Hashable, CustomStringConvertible {
    public let code: UInt32

    public init(_ code: UInt32) { self.code = code }

    public static let ok = SMPPStatus(0x00)
    public static let wrongLength = SMPPStatus(0x02)
    public static let wrongCommand = SMPPStatus(0x03)
    public static let notBound = SMPPStatus(0x04)
    public static let systemError = SMPPStatus(0x08)
    public static let wrongDestination = SMPPStatus(0x0b)
    public static let bindFailed = SMPPStatus(0x0d)
    public static let wrongPassword = SMPPStatus(0x0e)
    public static let queueFull = SMPPStatus(0x14)
    public static let throttled = SMPPStatus(0x58)

    /// The meaning of a status for a submit.
    enum Meaning: Equatable {
        case accepted
        /// The number will never accept the message.
        case refused
        /// The message was not accepted now; a later attempt may succeed.
        case later
        /// The gateway is overloaded and accepts no message for a moment.
        case slower
        /// The relay or its settings for this gateway are at fault.
        case ours
    }

    var meaning: Meaning {
        switch code {
        case 0x00: .accepted
        // Invalid destination, permanent failure of the network, rejection.
        case 0x0b, 0x65, 0x66: .refused
        case 0x14, 0x58: .slower
        // Wrong session state, system error, failed submit, temporary failure, failed delivery,
        // unknown error.
        case 0x04, 0x08, 0x45, 0x64, 0xfe, 0xff: .later
        // A status outside the specification is particular to this gateway (no credit, route
        // closed): another gateway may accept the message.
        default: .ours
        }
    }

    /// The name, meaning and number, such as `ESME_RTHROTTLED, throttled (0x58)`.
    public var description: String {
        let number = "0x" + String(code, radix: 16)
        if let known = Self.words[code] { return "\(known.name), \(known.means) (\(number))" }
        return (0x400...0x4ff).contains(code) ? "vendor-specific status \(number)" : "status \(number)"
    }

    private static let words: [UInt32: (name: String, means: String)] = [
        0x00: ("ESME_ROK", "no error"),
        0x01: ("ESME_RINVMSGLEN", "invalid message length"),
        0x02: ("ESME_RINVCMDLEN", "invalid command length"),
        0x03: ("ESME_RINVCMDID", "invalid command"),
        0x04: ("ESME_RINVBNDSTS", "wrong bind state for this command"),
        0x05: ("ESME_RALYBND", "already bound"),
        0x06: ("ESME_RINVPRTFLG", "invalid priority"),
        0x07: ("ESME_RINVREGDLVFLG", "invalid registered_delivery flag"),
        0x08: ("ESME_RSYSERR", "system error"),
        0x0a: ("ESME_RINVSRCADR", "invalid source address"),
        0x0b: ("ESME_RINVDSTADR", "invalid destination"),
        0x0c: ("ESME_RINVMSGID", "invalid message id"),
        0x0d: ("ESME_RBINDFAIL", "bind failed"),
        0x0e: ("ESME_RINVPASWD", "wrong password"),
        0x0f: ("ESME_RINVSYSID", "wrong system id"),
        0x14: ("ESME_RMSGQFUL", "queue full"),
        0x15: ("ESME_RINVSERTYP", "invalid service type"),
        0x43: ("ESME_RINVESMCLASS", "invalid esm_class"),
        0x45: ("ESME_RSUBMITFAIL", "submit failed"),
        0x48: ("ESME_RINVSRCTON", "invalid source TON"),
        0x49: ("ESME_RINVSRCNPI", "invalid source NPI"),
        0x50: ("ESME_RINVDSTTON", "invalid destination TON"),
        0x51: ("ESME_RINVDSTNPI", "invalid destination NPI"),
        0x53: ("ESME_RINVSYSTYP", "wrong system type"),
        0x58: ("ESME_RTHROTTLED", "throttled"),
        0x61: ("ESME_RINVSCHED", "invalid scheduled delivery time"),
        0x62: ("ESME_RINVEXPIRY", "invalid validity period"),
        0x64: ("ESME_RX_T_APPN", "temporary failure"),
        0x65: ("ESME_RX_P_APPN", "permanent failure"),
        0x66: ("ESME_RX_R_APPN", "rejected"),
        0xc0: ("ESME_RINVOPTPARSTREAM", "invalid optional parameters"),
        0xc1: ("ESME_ROPTPARNOTALLWD", "optional parameter not allowed"),
        0xc2: ("ESME_RINVPARLEN", "invalid parameter length"),
        0xc3: ("ESME_RMISSINGOPTPARAM", "expected optional parameter missing"),
        0xc4: ("ESME_RINVOPTPARAMVAL", "invalid value of an optional parameter"),
        0xfe: ("ESME_RDELIVERYFAILURE", "delivery failed"),
        0xff: ("ESME_RUNKNOWNERR", "unknown error"),
    ]
}
