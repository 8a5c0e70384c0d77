import Crypto
import Domain
import World

/// The code by which the help desk finds the recovery of the person on the telephone. The website
/// shows it to whoever holds the handle, and the person reads it out.
///
/// Purpose: an operator checks a person, and vouches for a recovery. Without the code the recovery
/// could be one of somebody else who reads the mailbox and has opened another link meanwhile.
///
/// The code proves nothing about the person, so it need not be secret. It follows from the id of
/// the recovery, which nobody can choose; a thief with eight links an hour meets the code of another
/// recovery with a chance of 1 : 125,000 an hour. Tested in `SpokenCodeTests.swift`, and
/// end to end in `RecoveryTests.swift`.
public struct SpokenCode: Sendable, Equatable {
    /// Six digits.
    public let text: String

    public init(of recovery: RecoveryID) {
        let digest = SHA256.hash(Array("twoefay recovery help desk".utf8) + recovery.bytes)
        let number = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 1_000_000
        let digits = String(number)
        text = String(repeating: "0", count: 6 - digits.count) + digits
    }

    /// Returns the opened recovery that has this code; nil if none has it, or if two have it.
    public static func recovery(_ typed: String, among open: [RecoveryRow], at now: Timestamp) -> RecoveryRow? {
        let matching = open.filter { $0.life.phase(at: now) == .opened && SpokenCode(of: $0.id).matches(typed) }
        return matching.count == 1 ? matching[0] : nil
    }

    /// Whether somebody has typed this code. Spaces and hyphens do not matter.
    public func matches(_ typed: String) -> Bool { typed.filter { $0 != " " && $0 != "-" } == text }
}
