import Domain
import JSON
import Relay

extension Problem {
    /// The problem of an approval or a change of the PIN that the PIN or PUK does not permit.
    static func pin(_ refusal: PINRefusal) -> Problem {
        var problem = Problem(refusal.code, refusal.advice)
        switch refusal {
        case .wrong(let triesLeft), .pukWrong(let triesLeft), .unlockWrong(let triesLeft):
            problem.members.set("tries_left", .integer(Int64(triesLeft)))
        case .unset, .unsigned, .locked, .pukLocked, .unlockVoid: break
        }
        return problem
    }
}

extension PINRefusal {
    fileprivate var code: Problem.Code {
        switch self {
        case .unset, .unsigned: .pinRequired
        case .wrong: .pinWrong
        case .locked: .pinLocked
        case .pukWrong: .pukWrong
        case .pukLocked: .pukLocked
        case .unlockWrong: .unlockWrong
        case .unlockVoid: .unlockVoid
        }
    }

    /// The reason, and how to go on.
    fileprivate var advice: LocalizedText {
        switch self {
        case .unset:
            LocalizedText(
                "The website accepts only phones with a PIN: set one, and answer again. Nothing has changed",
                de: "Die Website lässt nur Telefone mit PIN zu: Setzen Sie eine und antworten Sie erneut. Es wurde "
                    + "nichts geändert")
        case .unsigned:
            LocalizedText(
                "The answer needs pin_signature, because this phone has a PIN. Nothing has changed",
                de: "Die Antwort braucht pin_signature, denn dieses Telefon hat eine PIN. Es wurde nichts geändert")
        case .wrong(let triesLeft):
            LocalizedText(
                "The PIN is wrong. After \(triesLeft) more wrong ones it is locked",
                de: "Die PIN ist falsch. Nach \(triesLeft) weiteren falschen ist sie gesperrt")
        case .locked:
            LocalizedText(
                "The PIN is locked after \(PhonePIN.tries) wrong ones. The PUK resets it. The phone can still deny",
                de: "Die PIN ist nach \(PhonePIN.tries) falschen gesperrt. Die PUK setzt sie zurück. Ablehnen kann das "
                    + "Telefon weiterhin")
        case .pukWrong(let triesLeft):
            LocalizedText(
                "The PUK is wrong. After \(triesLeft) more wrong ones it is locked",
                de: "Die PUK ist falsch. Nach \(triesLeft) weiteren falschen ist sie gesperrt")
        case .pukLocked:
            LocalizedText(
                "The PUK is locked after \(PhonePIN.pukTries) wrong ones: the help desk can give a code that unlocks the "
                    + "phone, or bind the phone again",
                de:
                    "Die PUK ist nach \(PhonePIN.pukTries) falschen gesperrt: Der Support kann einen Code nennen, der das "
                    + "Telefon entsperrt, oder binden Sie das Telefon neu")
        case .unlockWrong(let triesLeft):
            LocalizedText(
                "The code is wrong. After \(triesLeft) more wrong ones it is void",
                de: "Der Code ist falsch. Nach \(triesLeft) weiteren falschen gilt er nicht mehr")
        case .unlockVoid:
            LocalizedText(
                "No unlock code is valid for this phone: it has expired, was used or is void. Ask the help desk for "
                    + "another one",
                de:
                    "Für dieses Telefon gilt kein Entsperrcode: Er ist abgelaufen, verbraucht oder ungültig. Lassen Sie "
                    + "sich vom Support einen neuen nennen")
        }
    }
}
