import Domain
import JSON
import Relay

/// The shapes of logins, their results and notices.
extension Shape {
    static let openedLogin = object([
        "login": words(["verified", "unverified"]), "challenge": id, "number?": number, "factor": factor.orNull,
        "expires_at": time, "codes?": words(["locked"]).about("No code of the user is accepted now"),
        "missing?": enrolmentSteps,
        "adjusted?": object(["user_agent": text("Mozilla/5.0").orNull]).about(
            "What the phone shows instead of what was sent"),
    ]).showing(without: "codes", "missing", "adjusted").named("OpenedLogin")

    static let decided = object(["login": words(["success", "failure"])]).named("Decided")
    static let result = words(["success", "failure", "wait"])

    private static let stepState = word("StepState", StepState.self)
    private static let resultMembers = object([
        "login": result.about("The result, which never changes once it is not wait"), "challenge": id,
        "factor": factor.orNull.about("The factor that answered, or the present one"),
        "assurance": word("Assurance", Assurance.self).showing("high").orNull,
        "proof": word("Proof", Proof.self).orNull,
        "steps": list(
            of: object([
                "factor": factor, "state": stepState, "at": time, "reason?": text("410"),
                "tries?": integer(2).about("The attempts of a push that waits for another one"),
            ])),
        "reason?": word("Reason", Reason.self), "context": text("e30").about("What the phone showed, in base64url"),
        "receipt?": jws.about("The answer that the phone signed"), "device?": id,
        "phone_place?": object([
            "check": word("PlaceCheck", PlaceCheck.self), "distance?": integer(3).about("In kilometres"),
        ]),
        "uv?": word("UserVerification", UserVerification.self).showing("biometric"), "uv_age?": integer(2),
        "app?": app, "webauthn?": ownerAssertion, "attestation?": judgedPosture,
    ]).showing(without: "reason")
    static let loginResult = resultMembers.named("LoginResult")
    /// The result as `/auth` returns it: a user without a challenge has none.
    static let toldResult = resultMembers.adding([
        "login": words(["success", "failure", "wait", ""]).about(
            "Empty if the user has no challenge. All else is then left out")
    ]).requiring("login").named("ToldResult")

    static let begunFactor = object([
        "challenge": id, "factor": factor, "state": stepState, "reason?": text("410"),
    ]).named("BegunFactor")

    static let pendingList = object([
        "pending": list(
            of: object([
                "challenge": id, "nonce": text("3q2-7w").about("In base64url"),
                "context": text("e30").about("The bytes to show and to sign, in base64url"), "expires_at": time,
                "asks_place?": mark, "demands?": demands,
            ]).named("PendingChallenge")),
        "pins?": jws.about("A twoefay-pins+jwt"), "time": time.about("The relay's clock"),
    ]).named("PendingList")

    static let notice = object([
        "message": id, "from": word("NoticeAuthor", NoticeAuthor.self), "title": text("Maintenance"),
        "created_at": time,
    ])
    static let userNotice = notice.adding(["text": text("No logins on Sunday."), "read_at": time.orNull])

    static func noticeList(of notice: Shape) -> Shape {
        object(["messages": list(of: notice), "unread": integer(1), "archived": integer(3)])
    }
}
