import Crypto
import HTTP
import World

/// The pins of the relay's authority, as a statement of that authority changes them.
extension Enrolment {
    /// The pins of the authorities that the phone trusts: one, or two during a replacement.
    public var pins: [[UInt8]] { [pin, nextPin].compactMap { $0 } }

    /// Returns the enrolment with the pins of a statement.
    ///
    /// - Parameter now: the time by the relay's clock, as far as the phone knows it.
    func repinned(by text: String, at now: Timestamp) throws(PinStatement.Malformed) -> Enrolment {
        let statement = try PinStatement(text)
        if let refusal = statement.refusal(by: relay.text, pinned: pins, last: pinSequence, at: now) {
            throw refusal
        }
        var changed = self
        // The signer is the authority that the phone trusts for certain.
        changed.pin = statement.signer
        changed.nextPin = statement.pins.first { $0 != statement.signer }
        changed.pinSequence = statement.sequence
        return changed
    }
}

extension Responder {
    /// Takes a statement about the pins, unless there is a reason to refuse it.
    func take(_ statement: String, into pending: inout Pending) {
        do throws(PinStatement.Malformed) {
            pending.repinned = try enrolment.repinned(by: statement, at: line.clock.now())
        } catch {
            pending.pinsFault = error
        }
    }
}
