/// The texts of the website, by meaning. English.swift and German.swift are the two catalogues. The
/// compiler checks that both are complete.
enum ShopText: Sendable, Hashable {
    // The frame of every page.
    case skip, menu, toStart, back, cancel, confirm, goOn, copy, copied
    case logIn, logOut, loggedOut, signUp, members, phones, authenticator, recoveryCodes

    // Signing up and logging in.
    case welcome, whatThisIs, userName, nameRule, nameIsTaken, nameOrAddressIsTaken
    case password, passwordRule, wrongPassword, tooManyGuesses
    case email, emailUse, emailRule, mobileNumber, numberUse, numberRule, lookAgain
    case noAccount
    case signedUp(String)
    /// This text is shown on the phone too.
    case membersArea

    // Waiting for the phone.
    case lookAtPhone, typeNumber, useCode, askingPhone, phoneRang, phoneShows, openApp, stillTrying
    case textOnItsWay, textSent, mailOnItsWay, mailSent, typeAppCode, typeTokenCode, typeAnyCode
    case saidYes, saidYesThen, notLoggedIn, notDone, logInAgain
    case denied, fraud, wrongNumber, endedByWrongCode, farPhone, expired, cancelled, superseded, undeliverable, locked,
        frozen, disabled, userExpired, notProved

    // Codes.
    case enterCode, code, codeRule, wrongCode, otherWays, haveRecoveryCode, notThisWay
    case orNumber(String)
    case sendText(String)
    case sendMail(String)
    case waitSeconds(Int64)
    case enterRecoveryCode, recoveryCode, recoveryCodeUse, wrongRecoveryCode

    // Members.
    case hello(String)
    case cameByPhone, cameByApp, cameByCode, cameByRecoveryCode, cameBySignUp
    case order, orderHint, yourOrders, payment, article, tea, kettle, samovar, payNeedsPhone
    case pay(String)
    case paid(String, String)

    // Phones.
    case noPhones, namelessPhone, phoneActive, phoneUnproved, phoneWaits, phoneSuspended
    case addPhone, addAnotherPhone, openPhoneApp, scanThis, nameIt, qrOfActivation, cannotScan, waitingForPhone,
        phoneIsThere
    case rename, removePhone, removed, notRenamed
    case newNameOf(String)
    case renamed(String)
    case remove(String)
    case removeSure(String)

    // The remaining factors after a removal.
    case removeLastPhone, lostPhone, lastPhoneGoes, lastAppGoes, whatStays, nothingStays, messagesStay
    case stayPhone, stayApp, stayToken, stayRecoveryCode
    case stayText(String)
    case stayMail(String)

    // An app with codes, and recovery codes.
    case authenticatorUse, authenticatorIsThere, addAuthenticator, authenticatorAdded
    case removeAuthenticator, removeAuthenticatorSure, authenticatorRemoved
    case scanWithApp, typeItsCode, qrOfSecret, secretIs, appCode, beginAnew
    case recoveryCodesUse, recoveryCodesAreThere, makeRecoveryCodes, makeNewRecoveryCodes, shownOnce, haveThem
    case checkRecoveryCodes, recoveryCodesChecked
    case typeRecoveryCode(Int64)

    // Locked and frozen users.
    case unlock, unlocked, stoppedByFraud, stoppedByGuesses, stoppedByOperator, askOperator, codesAreLocked
    case codesWaitForUnlock, operatorUnlocksCodes

    // Faults.
    case didNotWork, tryAgain, noSuchPage, formIsOld, relayIsAway
    case relayRefused(String)

    func text(in language: Language) -> String {
        switch language {
        case .english: english
        case .german: german
        }
    }
}

/// A language of the website, by its language tag.
enum Language: String, Sendable, CaseIterable {
    case english = "en"
    case german = "de"

    /// The name of the language, in that language.
    var name: String {
        switch self {
        case .english: "English"
        case .german: "Deutsch"
        }
    }

    /// Returns the first supported language in `Accept-Language`. Weights are ignored, since
    /// browsers list their preferences in order.
    init(accepted: String?) {
        let codes = (accepted ?? "").split(separator: ",").map { entry in
            entry.prefix { $0 != ";" && $0 != "-" }.filter { $0 != " " }.lowercased()
        }
        self = codes.lazy.compactMap { Language(rawValue: $0) }.first ?? .english
    }
}
