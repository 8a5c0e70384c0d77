import TwoefayClient
import World

/// What somebody is asked on their phone, and what is to be done once they have said yes. It waits in the visitor's session:
/// whose session it is decides, never a challenge that a browser sends.
struct OpenQuestion: Sendable, Equatable {
    enum Purpose: Sendable, Equatable {
        /// The password was right.
        case login
        case payment(Article)
        /// The relay itself has asked whether this may be added.
        case addition(Addition)
    }

    enum Addition: Sendable, Equatable { case phone, authenticator, recoveryCodes }

    let account: String
    let purpose: Purpose
    let challenge: String
    let number: String?
    /// What was asked, where it was the website that asked: the receipt is checked against it.
    let login: OpenLogin?

    init(_ login: OpenLogin, for purpose: Purpose) {
        (account, challenge, number) = (login.asked.username, login.challenge, login.number)
        (self.purpose, self.login) = (purpose, login)
    }

    init(_ needed: Problem.NeededApproval, of account: String, for addition: Addition) {
        (self.account, challenge, number) = (account, needed.challenge, needed.number)
        (purpose, login) = (.addition(addition), nil)
    }

    /// What is signed for is shown on the phone alone, so no code will do.
    var takesCodes: Bool {
        if case .payment = purpose { false } else { true }
    }
}

/// What the shop sells.
enum Article: String, Sendable, CaseIterable {
    case tea, kettle, samovar

    /// As the relay reads amounts: `number-below` of its policies goes by it.
    var amount: String {
        switch self {
        case .tea: "4.50 EUR"
        case .kettle: "38.00 EUR"
        case .samovar: "249.00 EUR"
        }
    }

    var name: Words {
        switch self {
        case .tea: .tea
        case .kettle: .kettle
        case .samovar: .samovar
        }
    }
}
