import Crypto
import Domain
import Log
import Synchronization
import World

/// The store port for the pins that phones have.
public protocol StatedPinStore: Sendable {
    /// Records that the phone holds the newest pin of the statement with this number.
    func record(pinSequence: Int64, of device: DeviceID) async throws(StoreFailure)
}

/// The pin of the server's authority, and the statement about the pins that follow.
///
/// Purpose: activations name the pin. Phones that hold it, and not yet the next one, get the
/// statement with `/pending`. The relay only passes it on: the authority's key has signed it.
final class AuthorityPins: Sendable {
    private struct State {
        var pin: [UInt8]
        var statement: PinStatement?
    }

    private let state: Mutex<State>

    init(pin: [UInt8]) { state = Mutex(State(pin: pin)) }

    var pin: [UInt8] { state.withLock { $0.pin } }
    var statement: PinStatement? { state.withLock { $0.statement } }

    func replace(pin: [UInt8], statement: PinStatement?) {
        state.withLock { $0 = State(pin: pin, statement: statement) }
    }
}

extension PinStatement {
    /// The pin that phones shall learn from the statement: that of the next authority, or the only
    /// one.
    public var newest: [UInt8] { pins.first { $0 != signer } ?? signer }
}

extension Relay {
    /// Replaces the pin of later activations, and the statement for phones.
    public func replace(pin: [UInt8], statement: PinStatement?) {
        authorityPins.replace(pin: pin, statement: statement)
    }

    /// The pin of the server's authority, for activations.
    public var authorityPin: [UInt8] { authorityPins.pin }

    /// Returns the statement that a phone with these pins shall take; nil if there is none. A phone
    /// that has the newest pin is noted, so that the operator sees how many phones lack it.
    ///
    /// A phone that pins another authority than the signer could not believe the statement.
    public func statedPins(for phone: PhoneCredential, holding pins: [[UInt8]]) async -> PinStatement? {
        guard let statement = authorityPins.statement, statement.expiresAt > time.now() else { return nil }
        if pins.contains(statement.newest), phone.pinSequence < statement.sequence {
            // The list of logins does not depend on this write, which is repeated at the next request.
            try? await store.record(pinSequence: statement.sequence, of: phone.id)
            log.info(
                "pins.taken", [.device: phone.id.text, .website: phone.website.name, .count: Int(statement.sequence)])
        }
        guard pins.contains(statement.signer), Set(pins) != Set(statement.pins) else { return nil }
        return statement
    }
}
