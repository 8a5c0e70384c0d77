import Testing

@testable import Log

struct LoggedRequestTests {
    /// Tasks that a request starts write its id, too. Work for everybody does not.
    @Test func linesOfARequestNameIt() async {
        let sink = MemorySink()
        let log = Log(sink: sink).with([.website: "shop"])
        log.info("before")
        await LoggedRequest.run("r1") {
            log.info("during")
            await Task { log.info("started") }.value
            await LoggedRequest.run(nil) { log.info("everybody") }
            log.info("other", [.request: "r2"])
        }
        await LoggedRequest.run("r3", trace: "0af7") {
            log.info("traced")
            log.info("held", [.request: "r4"])
        }
        log.info("after")
        let seen = sink.lines.map { $0.split(separator: " ").dropFirst(2).joined(separator: " ") }
        #expect(
            seen == [
                "event=before website=shop", "event=during website=shop request=r1",
                "event=started website=shop request=r1", "event=everybody website=shop",
                "event=other website=shop request=r2",
                "event=traced website=shop request=r3 trace=0af7", "event=held website=shop request=r4",
                "event=after website=shop",
            ])
    }
}
