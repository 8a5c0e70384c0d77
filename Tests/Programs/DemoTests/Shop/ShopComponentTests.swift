import EventLoop
import HTTP
import TestSupport
import Testing
import TwoefayClient
import World

@testable import Demo

@Suite("Components of the sample website") struct ShopComponentTests {
    @Test func eachReasonOfAFailureHasItsOwnText() {
        let reasons: [Reason] = [
            .denied, .fraud, .wrongNumber, .wrongCode, .place, .expired, .cancelled, .superseded, .undeliverable,
            .locked, .frozen, .disabled,
        ]
        for language in [\ShopText.english, \ShopText.german] {
            #expect(Set(reasons.map { Shop.explanation($0)[keyPath: language] }).count == reasons.count)
        }
    }

    @Test func interpolatedTextIsEscaped() {
        let hostile = #"<a href="x" title='y'>&"#
        let page: HTML = #"<p title="\#(hostile)">\#(hostile)</p>"#
        let escaped = "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;"
        #expect(page.text == #"<p title="\#(escaped)">\#(escaped)</p>"#)
        let inner: HTML = "<b>\("<i>")</b>"
        let none: HTML? = nil
        let outer: HTML = "\(inner)\(none)\([inner, inner])"
        #expect(outer.text == "<b>&lt;i&gt;</b><b>&lt;i&gt;</b>\n<b>&lt;i&gt;</b>")
    }

    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    @Test func guessesAreCountedPerName() {
        let throttle = Throttle()
        for second in 0..<5 { #expect(throttle.attempt("ada", at: at(Int64(second))) == nil) }
        #expect(throttle.attempt("ada", at: at(5)) == .seconds(29))
        #expect(throttle.attempt("bob", at: at(5)) == nil)
        // After the pause one more guess is allowed, and it starts another pause.
        #expect(throttle.attempt("ada", at: at(34)) == nil)
        #expect(throttle.attempt("ada", at: at(35)) == .seconds(29))
        throttle.succeeded("ada")
        for second in 36..<41 { #expect(throttle.attempt("ada", at: at(Int64(second))) == nil) }
        #expect(throttle.attempt("ada", at: at(41)) != nil)
    }

    @Test func idleSessionsExpire() {
        let time = TestTime()
        let sessions = Sessions(time: time, randomness: SystemRandomness())
        let (id, session) = sessions.begin()
        #expect(sessions.find(id)?.token == session.token && sessions.find("another") == nil)
        time.advance(by: Sessions.rest - .seconds(1))
        #expect(sessions.find(id) != nil)
        time.advance(by: Sessions.rest - .seconds(1))
        sessions.change(id) { $0.language = .german }
        let renewed = sessions.renew(id) { $0.account = "ada" }
        #expect(sessions.find(id) == nil)
        #expect(sessions.find(renewed)?.account == "ada" && sessions.find(renewed)?.language == .german)
        #expect(sessions.find(renewed)?.token != session.token)
        time.advance(by: Sessions.rest)
        #expect(sessions.find(renewed) == nil)
    }

    private func question(_ account: String, _ challenge: String) -> PendingConfirmation {
        PendingConfirmation(account: account, purpose: .login, challenge: challenge, number: nil, end: Task { nil })
    }

    /// Only a fraud report or a frozen user ends sessions. The browser that asked still shows the
    /// result, but is logged out.
    @Test(arguments: [(Reason.fraud, true), (.frozen, true), (.denied, false), (nil, false)])
    func onlyTheSessionsOfOneCustomerEnd(reason: Reason?, isEnd: Bool) {
        let sessions = Sessions(time: TestTime(), randomness: SystemRandomness())
        func begin(_ change: (inout Session) -> Void) -> String { sessions.renew(sessions.begin().id, change) }
        let asked = question("ada", "c1")
        let (inside, other) = (begin { $0.account = "ada" }, begin { $0.account = "bob" })
        let asking = begin { ($0.account, $0.entrance, $0.question) = ("ada", .phone, asked) }
        let stranger = begin { $0.question = asked }
        let earlier = begin { $0.question = question("ada", "c0") }
        sessions.endSessionsAfterFraud(reason, of: "ada", "c1")
        #expect((sessions.find(inside) == nil) == isEnd)
        #expect((sessions.find(asking)?.account == nil) == isEnd && sessions.find(asking)?.question == asked)
        #expect(sessions.find(stranger)?.question == asked && sessions.find(other)?.account == "bob")
        // A session with an earlier request survives a freeze, because it may lead to the unlock
        // page.
        #expect((sessions.find(earlier) == nil) == (reason == .fraud))
    }

    @Test(arguments: [
        (nil, Language.english), ("", .english), ("de", .german), ("de-AT,en;q=0.5", .german),
        ("fr, de;q=0.8", .german),
        ("fr", .english), ("en-GB, de", .english), (";;,,", .english),
    ]) func firstSupportedLanguageIsUsed(accepted: String?, language: Language) {
        #expect(Language(accepted: accepted) == language)
    }

    @Test func browserNameIsDerivedFromTheUserAgent() {
        func browser(_ agent: String) -> String? {
            let request = Request(method: "GET", path: "/", fields: Fields([.init("user-agent", agent)]))
            let (id, session) = Sessions(time: TestTime(), randomness: SystemRandomness()).begin()
            return PageRequest(request, id: id, session: session, isNew: true).browser
        }
        #expect(
            browser("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML) Chrome/140.0 Safari/537.36 Edg/140.0")
                == "Edge on Windows")
        #expect(
            browser("Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML) Chrome/140.0 Mobile Safari/537.36")
                == "Chrome on Android")
        #expect(browser("curl/8.14.1") == "curl")
        #expect(browser("<script>") == nil)
    }
}
