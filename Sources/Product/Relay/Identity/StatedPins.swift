import Crypto
import Domain
import Log
import Synchronization
import World

/// The store port for the pins that phones have.
public protocol StatedPinStore: Sendable {
    /// Records that the phone has taken the statement with this number.
    func record(pinSequence: Int64, of device: DeviceID) async throws(StoreFailure)
}

/// The pin of the server's authority, and the statement about the pins that follow.
///
/// Purpose: activations name the pin. Phones that have not taken the statement get it with
/// `/pending`. The relay only passes it on: the authority's key has signed it.
final class AuthorityPins: Sendable {
    private struct State {
        var pin: [UInt8]
        var statement: PinStatement?
        var formerPin: [UInt8]?
        /// The phones whose number is being written.
        var noting: Set<DeviceID> = []
    }

    private let state: Mutex<State>

    init(pin: [UInt8]) { state = Mutex(State(pin: pin)) }

    var pin: [UInt8] { state.withLock { $0.pin } }

    /// The statement that phones take now; nil if there is none, or if it has expired.
    func statement(at now: Timestamp) -> PinStatement? {
        state.withLock { $0.statement }.flatMap { $0.expiresAt > now ? $0 : nil }
    }

    /// The pin for activations. While phones move from a former authority, it is that one's: relays
    /// that were not reloaded yet have no certificate of the present one. The phone then takes the
    /// statement, as those that were bound before.
    func activationPin(at now: Timestamp) -> [UInt8] {
        state.withLock { state in
            guard let statement = state.statement, statement.expiresAt > now else { return state.pin }
            return state.formerPin ?? state.pin
        }
    }

    func replace(pin: [UInt8], statement: PinStatement?, formerPin: [UInt8]?) {
        state.withLock {
            ($0.pin, $0.statement, $0.formerPin) = (pin, statement, formerPin)
        }
    }

    /// Returns whether the caller is the only one that writes the number of this phone.
    func beginNoting(_ phone: DeviceID) -> Bool { state.withLock { $0.noting.insert(phone).inserted } }
    func endNoting(_ phone: DeviceID) { state.withLock { _ = $0.noting.remove(phone) } }
}

extension PinStatement {
    /// The pin that phones shall learn from the statement: that of the next authority, or the only
    /// one.
    public var newest: [UInt8] { pins.first { $0 != signer } ?? signer }
}

extension Relay {
    /// Replaces the pin of the server's authority, and the statement for phones.
    ///
    /// - Parameter formerPin: the pin of the former authority, while the statement names both and the
    ///   server still sends the former one's certificate.
    public func replace(pin: [UInt8], statement: PinStatement?, formerPin: [UInt8]?) {
        authorityPins.replace(pin: pin, statement: statement, formerPin: formerPin)
    }

    /// The pin of the server's authority.
    public var authorityPin: [UInt8] { authorityPins.pin }
    /// The pin that activations name.
    var activationPin: [UInt8] { authorityPins.activationPin(at: time.now()) }

    /// Returns the statement that a phone with these pins shall take; nil if there is none. A phone
    /// that has taken it is noted, so that the operator sees how many phones have not.
    ///
    /// A phone that has the right pins already takes it, too. Otherwise an older statement, which was
    /// withdrawn, would still be new to the phone. A phone that pins another authority than the signer
    /// could not believe the statement.
    ///
    /// - Parameter last: the number of the statement that the phone took last; 0 for none.
    public func statedPins(for phone: PhoneCredential, holding pins: [[UInt8]], last: Int64) -> PinStatement? {
        guard let statement = authorityPins.statement(at: time.now()) else { return nil }
        guard last >= statement.sequence else { return pins.contains(statement.signer) ? statement : nil }
        if pins.contains(statement.newest), phone.pinSequence < statement.sequence {
            note(statement.sequence, of: phone)
        }
        return nil
    }

    /// Records the number of the statement that the phone has taken. No answer waits for it; after a
    /// failure, the phone's next request repeats it.
    private func note(_ sequence: Int64, of phone: PhoneCredential) {
        guard authorityPins.beginNoting(phone.id) else { return }
        spawn { [self] in
            defer { authorityPins.endNoting(phone.id) }
            do throws(StoreFailure) {
                try await store.record(pinSequence: sequence, of: phone.id)
                log.info("pins.taken", [.device: phone.id.text, .website: phone.website.name, .count: Int(sequence)])
            } catch {
                log.warning("pins.failed", [.device: phone.id.text, .reason: error.reason])
            }
        }
    }
}
