import Bytes
import Crypto
import Synchronization

/// The key of an authority on a token (a smart card or an HSM). The token signs and never returns
/// the key.
///
/// Every call of the token's module is made under one lock. If a session has ended, for example
/// after a reset of the token, each signature opens a new one at most once. A PIN that the token
/// has refused is not tried again, because further tries would lock the token. Tested in
/// `FaultsTests/TokenTests.swift`.
public final class TokenKey: AuthorityKey {
    /// The location of a key.
    public struct Place: Sendable, Equatable {
        /// The path of the PKCS#11 library of the token's maker.
        public let module: String
        /// The label of the token.
        public let token: String
        /// The label of the private key.
        public let key: String

        public init(module: String, token: String, key: String) {
            self.module = module
            self.token = token
            self.key = key
        }
    }

    private struct State {
        let module: TokenModule
        var session: TokenSession?
        var isPINWrong = false
    }

    public let publicKey: P256PublicKey
    private let place: Place
    private let pin: Secret
    private let state: Mutex<State>

    /// Opens the token, and signs once to check that the key is the expected one.
    public init(_ place: Place, pin: Secret, publicKey: P256PublicKey) throws(CryptoFailure) {
        self.place = place
        self.pin = pin
        self.publicKey = publicKey
        do throws(TokenFailure) {
            state = Mutex(State(module: try TokenModule(path: place.module)))
        } catch {
            throw CryptoFailure(error.description)
        }
        let probe = Array("twoefay".utf8)
        guard publicKey.verify(signature: try sign(probe), over: probe) else {
            throw CryptoFailure("the key \(place.key) on the token \(place.token) does not match the certificate")
        }
    }

    /// Returns an ECDSA signature over SHA-256 of the message: r‖s, 64 bytes.
    public func sign(_ message: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        let digest = SHA256.hash(message)
        do throws(TokenFailure) {
            return try state.withLock { state throws(TokenFailure) in
                if let session = state.session {
                    if let signature = try? session.sign(digest) { return signature }
                    session.close()
                    state.session = nil
                }
                let session = try open(&state)
                state.session = session
                return try session.sign(digest)
            }
        } catch {
            throw CryptoFailure(error.description)
        }
    }

    private func open(_ state: inout State) throws(TokenFailure) -> TokenSession {
        guard !state.isPINWrong else {
            throw TokenFailure(
                "the token \(place.token) refused the PIN earlier, and the PIN is not sent again; "
                    + "correct pkcs11.pin_file, then restart twoefay-keys")
        }
        do throws(TokenFailure) {
            return try TokenSession(state.module, token: place.token, key: place.key, pin: pin)
        } catch {
            state.isPINWrong = error.isAboutPIN
            throw error
        }
    }
}
