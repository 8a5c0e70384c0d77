import Domain
import HTTP
import JSON
import Relay
import World

extension Problem {
    /// The problem that is returned when a verb refuses.
    init(_ refusal: Refusal) {
        switch refusal {
        case .unauthenticated: self = .unauthenticated
        case .forbidden(let why): self.init(.forbidden, why)
        case .approvalRequired(let challenge, let number):
            self.init(
                .approvalRequired,
                LocalizedText(
                    "When this challenge has succeeded, repeat the request with its id in approval",
                    de: "Sobald diese Challenge erfolgreich war, wiederholen Sie die Anfrage mit ihrer Kennung in "
                        + "approval"))
            members.set("challenge", .string(challenge.text))
            if let number { members.set("number", .string(number)) }
        case .codesLocked:
            self.init(
                .codesLocked,
                LocalizedText(
                    "Too many codes were wrong. The relay accepts no code until the user approves that on a phone "
                        + "(POST /user/…/unlock) or an operator unlocks the codes (twoefay user unlock)",
                    de: "Zu viele Codes waren falsch. Das Relay nimmt erst wieder Codes an, wenn der Benutzer das auf "
                        + "einem Telefon bestätigt (POST /user/…/unlock) oder der Betreiber die Codes entsperrt (twoefay "
                        + "user unlock)"))
        case .notAttested(let fault): self = .notAttested(fault)
        case .postureUnmet(let demands): self = .postureUnmet(demands)
        case .pin(let refusal): self = .pin(refusal)
        case .notFound: self = .notFound
        case .invalid(let faults): self = .invalid(faults)
        case .conflict(let faults): self.init(.conflict, nil, faults: faults)
        case .shownOnce: self = .shownOnce
        case .alreadyDecided(let result):
            self.init(
                .alreadyDecided,
                LocalizedText(
                    "The challenge has already ended with \(result); its result does not change",
                    de: "Die Challenge wurde bereits mit \(result) beendet; ihr Ergebnis ändert sich nicht mehr"))
            members.set("login", .string(result))
        case .limited(let pause):
            self.init(
                .limited, LocalizedText("Try again later", de: "Versuchen Sie es später erneut"),
                retryAfter: max(1, (pause.wholeMilliseconds + 999) / 1000))
        case .websiteLimited(let limit, let pause): self = .websiteLimited(limit, retryAfter: pause)
        case .unavailable: self = .unavailable
        case .pending(let pause):
            self.init(
                .unavailable,
                LocalizedText(
                    "The authority of the phones has not answered yet; try again later",
                    de:
                        "Die Zertifizierungsstelle der Telefone hat noch nicht geantwortet; versuchen Sie es später "
                        + "erneut"),
                retryAfter: max(1, (pause.wholeMilliseconds + 999) / 1000))
        case .broken:
            self.init(
                .internal,
                LocalizedText(
                    "The relay's log has details under the request-id of this answer",
                    de: "Einzelheiten stehen im Log des Relays unter der request-id dieser Antwort"))
        }
    }

    static func invalid(_ faults: [FieldFault]) -> Problem {
        Problem(.invalid, nil, faults: faults)
    }

    static let unauthenticated = Problem(
        .unauthenticated,
        LocalizedText(
            "The certificate or DPoP proof does not identify a registered caller",
            de: "Das Zertifikat oder der DPoP-Nachweis gehört zu keinem registrierten Aufrufer"))

    /// The same problem for objects that do not exist and for those of another caller.
    static let notFound = Problem(
        .notFound,
        LocalizedText(
            "The object does not exist, or belongs to another caller",
            de: "Das Objekt existiert nicht oder gehört einem anderen Aufrufer"))

    /// A fault of the calling program. It has its own code, so that nobody takes it for a user who is
    /// not there.
    static let routeNotFound = Problem(
        .routeNotFound,
        LocalizedText(
            "No route has this path: /openapi.json lists all of them",
            de: "Keine Route hat diesen Pfad: /openapi.json nennt alle"))

    static let shownOnce = Problem(
        .shownOnce,
        LocalizedText(
            "This request has already succeeded; its answer held a secret and is not shown again",
            de: "Diese Anfrage war schon erfolgreich; ihre Antwort enthielt ein Geheimnis und wird nicht noch einmal "
                + "gezeigt"))

    static let tooLarge = Problem(
        .tooLarge,
        LocalizedText(
            "A body may have at most \(Request.bodyLimit) bytes",
            de: "Ein Body darf höchstens \(Request.bodyLimit) Bytes haben"))

    static let unavailable = Problem(
        .unavailable,
        LocalizedText(
            "The relay cannot complete the request now, and knows of no change; try again later",
            de:
                "Das Relay kann die Anfrage jetzt nicht ausführen und weiß von keiner Änderung; versuchen Sie es später "
                + "erneut"),
        retryAfter: 2)
}
