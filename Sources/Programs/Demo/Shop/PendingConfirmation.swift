import TwoefayClient
import World

/// What somebody is asked on their phone, and what is to be done once they have said yes. It lies in the visitor's session:
/// whose session it is decides, never a challenge that a browser sends.
struct PendingConfirmation: Sendable, Equatable {
    enum Purpose: Sendable, Equatable {
        /// The password was right.
        case login
        case payment(Article)
        /// The relay itself has asked whether this may be added.
        case addition(Addition)

        /// What is signed for is shown on the phone alone, so no code will do.
        var takesCodes: Bool {
            if case .payment = self { false } else { true }
        }
    }

    enum Addition: Sendable, Equatable { case phone, authenticator, recoveryCodes }

    let account: String
    let purpose: Purpose
    let challenge: String
    let number: String?
    /// How it ended, for whoever waits for that; nil where the relay has not said it in time.
    let end: Task<Website.Verdict?, Never>

    var takesCodes: Bool { purpose.takesCodes }
}
