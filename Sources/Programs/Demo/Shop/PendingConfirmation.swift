import TwoefayClient
import World

/// A challenge for a customer, and the action that follows an approval.
///
/// Invariant: it is stored in the visitor's session. The session decides who is waiting, never a
/// challenge id that the browser sends.
struct PendingConfirmation: Sendable, Equatable {
    enum Purpose: Sendable, Equatable {
        /// A login after a correct password.
        case login
        case payment(Article)
        /// The addition of a factor, for which the relay itself opened the challenge.
        case addition(Addition)

        /// Whether a code may answer the challenge. A code may not approve a payment, because only
        /// the phone shows the payment.
        var takesCodes: Bool {
            if case .payment = self { false } else { true }
        }
    }

    enum Addition: Sendable, Equatable { case phone, authenticator, recoveryCodes }

    let account: String
    let purpose: Purpose
    let challenge: String
    let number: String?
    /// The task that waits for the end; its value is nil if the relay did not report the end in
    /// time.
    let end: Task<Website.Verdict?, Never>

    var takesCodes: Bool { purpose.takesCodes }
}
