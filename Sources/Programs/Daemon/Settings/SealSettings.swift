import Crypto
import Storage

/// The values of the store that the relays seal under the master key.
public enum SealedData: String, Sendable, CaseIterable {
    /// Secrets only. Operators can read the other values with SQL.
    case secrets
    /// Secrets, addresses, phone numbers, push tokens, and what phones were shown.
    case personal
}

extension Settings {
    /// Returns the sealer of personal values, which opens them whatever the setting is.
    public func personalSealer(_ sealer: Sealer) -> PersonalSealer { PersonalSealer(sealer, seals: seal == .personal) }
}
