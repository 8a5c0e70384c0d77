import Bytes
import Crypto
import EventLoop
import HTTP
import HTTP1
import TwoefayClient
import World

/// The sample website. Customers sign up with a name and a password, bind their phones, and log in
/// with both.
///
/// Every page is generated here, and works without a script. Invariant: a GET logs nobody in and
/// changes no account. A change is a POST with the session's token. Its answer is a redirect, or a
/// page that is shown only once. Tested in `ShopLoginTests.swift`, `ShopFactorTests.swift` and
/// `ShopDefenceTests.swift`.
public final class Shop: Pages {
    static let files: [PageFile] = [.baseCSS, .shopCSS, .shopJS, .iconSVG]
    static let name = "The Shop"

    let website: Website
    let customers = Customers()
    let passwords: Passwords
    let throttle = Throttle()
    let sessions: Sessions
    let time: any TimeSource
    let responder: PageResponder
    /// Called with every URI that a phone or an app can scan from the screen.
    let shown: @Sendable (String) -> Void
    private let cookie: String
    /// The name of the cookie that marks a browser as known for a customer. The cookie outlives
    /// sessions.
    let knownCookie: String
    let browsers: KnownBrowsers

    /// Creates the website.
    ///
    /// - Parameters:
    ///   - port: the website's port, which is part of its cookie names. A website with TLS would
    ///     use the name `__Host-session` and the attribute `Secure`.
    ///   - cost: the cost of a password hash.
    init(
        _ access: WebsiteAccess, responder: PageResponder, port: UInt16, loop: EventLoop, randomness: any Randomness,
        cost: PasswordHash.Cost = .usual, observer: @escaping MessageObserver,
        shown: @escaping @Sendable (String) -> Void
    ) throws(CallFault) {
        website = try Website(access, loop: loop, time: loop.time, randomness: randomness, observer: observer)
        do {
            passwords = try Passwords(cost: cost, randomness: randomness)
        } catch {
            throw .unable("passwords cannot be hashed: \(error)")
        }
        sessions = Sessions(time: loop.time, randomness: randomness)
        time = loop.time
        cookie = "shop_\(port)"
        knownCookie = "shop_known_\(port)"
        browsers = KnownBrowsers(randomness)
        self.responder = responder
        self.shown = shown
    }

    func close() async {
        passwords.close()
        await website.close()
    }

    public func answer(_ request: Request) async -> Response {
        if let file = responder.file(for: request) { return file }
        let known = request.cookie(cookie).flatMap { id in sessions.find(id).map { (id, $0) } }
        let (id, session) = known ?? sessions.begin()
        let visit = PageRequest(request, id: id, session: session, isNew: known == nil)
        guard request.method != "POST" || visit.isMeant else { return problem(visit, 403, .formIsOld) }
        do throws(CallFault) {
            return try await answer(visit)
        } catch {
            return trouble(visit, error)
        }
    }

    private func answer(_ visit: PageRequest) async throws(CallFault) -> Response {
        let what = "\(visit.request.method == "POST" ? "POST" : "GET") \(visit.request.path)"
        switch what {
        case "GET /": return welcome(visit)
        case "POST /language": return chooseLanguage(visit)
        case "GET /signup": return signUpPage(visit)
        case "POST /signup": return try await signUp(visit)
        case "GET /login": return logInPage(visit)
        case "POST /login": return try await logIn(visit)
        case "POST /logout": return logOut(visit)
        case "GET /wait": return try await waitingPage(visit)
        case "GET /wait/state": return await waitingState(visit)
        case "POST /wait": return try await goOn(visit)
        case "POST /wait/cancel": return try await cancel(visit)
        case "GET /code": return try await codePage(visit)
        case "POST /code": return try await enterCode(visit)
        case "POST /code/send": return try await sendCode(visit)
        case "GET /recover": return recoveryCodePage(visit)
        case "GET /unlock": return try await unlockPage(visit)
        case "POST /unlock": return try await unlock(visit)
        default: return try await answerMember(visit, what)
        }
    }

    /// Answers requests for the pages of logged-in customers.
    private func answerMember(_ visit: PageRequest, _ what: String) async throws(CallFault) -> Response {
        guard Self.forMembers.contains(what) else { return problem(visit, 404, .noSuchPage) }
        guard let account = visit.session.account else { return go(visit, to: "/login") }
        switch what {
        case "POST /pay": return try await pay(visit, account)
        case "GET /phones": return try await phonesPage(visit, account)
        case "POST /phones/rename": return try await renamePhone(visit, account)
        case "GET /phones/remove": return try await removePhonePage(visit, account, visit.query["device"])
        case "POST /phones/remove": return try await removePhone(visit, account)
        case "GET /phones/add": return addPhonePage(visit, account)
        case "POST /phones/add": return try await addPhone(visit, account)
        case "GET /phones/state": return await phonesState(visit, account)
        case "GET /totp": return try await authenticatorPage(visit, account)
        case "POST /totp": return try await addAuthenticator(visit, account)
        case "GET /totp/confirm": return confirmAuthenticatorPage(visit)
        case "POST /totp/confirm": return try await confirmAuthenticator(visit, account)
        case "GET /totp/remove": return try await removeAuthenticatorPage(visit, account)
        case "POST /totp/remove": return try await removeAuthenticator(visit, account)
        case "GET /recovery": return try await recoveryPage(visit, account)
        case "POST /recovery": return try await makeRecoveryCodes(visit, account)
        case "GET /recovery/check": return try await checkRecoveryCodesPage(visit, account)
        case "POST /recovery/check": return try await checkRecoveryCodes(visit, account)
        default: return membersPage(visit, account)
        }
    }

    private static let forMembers: Set<String> = [
        "GET /members", "POST /pay", "GET /phones", "POST /phones/rename", "GET /phones/remove", "POST /phones/remove",
        "GET /phones/add", "POST /phones/add", "GET /phones/state", "GET /totp", "POST /totp", "GET /totp/confirm",
        "POST /totp/confirm", "GET /totp/remove", "POST /totp/remove", "GET /recovery", "POST /recovery",
        "GET /recovery/check", "POST /recovery/check",
    ]

    /// Returns the session cookie if the browser does not have it yet or if the session has a new
    /// id.
    func cookies(_ visit: PageRequest, renewed: String? = nil) -> [Fields.Field] {
        guard let id = renewed ?? (visit.isNew ? visit.id : nil) else { return [] }
        return [.cookie(cookie, id)]
    }
}
