import Metrics
import Synchronization
import TestSupport
import Testing

private enum Colour: String, CaseIterable {
    case red, green
}

private struct Pair: Hashable {
    let left: Colour
    let right: Int
}

@Suite struct RegistryTests {
    private let registry = Registry()
    private var text: String { String(decoding: registry.exposition(), as: UTF8.self) }

    @Test func declaredSeriesAreShownAtZero() {
        let plain = registry.counter("app_events_total", "Events.")
        let colours = registry.counters("app_colours_total", "Colours seen.", by: "colour", Colour.self)
        let level = registry.gauge("app_level", "How high it stands.")
        registry.gauge("app_depth", "How deep it is.") { -7 }
        registry.constant("app_build_info", "What this is.", labels: [("version", "1.2"), ("of", "test")], 1)
        #expect(
            text == """
                # HELP app_events_total Events.
                # TYPE app_events_total counter
                app_events_total 0
                # HELP app_colours_total Colours seen.
                # TYPE app_colours_total counter
                app_colours_total{colour="red"} 0
                app_colours_total{colour="green"} 0
                # HELP app_level How high it stands.
                # TYPE app_level gauge
                app_level 0
                # HELP app_depth How deep it is.
                # TYPE app_depth gauge
                app_depth -7
                # HELP app_build_info What this is.
                # TYPE app_build_info gauge
                app_build_info{version="1.2",of="test"} 1.0

                """)
        plain.add()
        plain.add(41)
        colours.add(.green)
        level.add(5)
        level.subtract()
        #expect(text.contains("\napp_events_total 42\n"))
        #expect(text.contains("\napp_colours_total{colour=\"red\"} 0\n"))
        #expect(text.contains("\napp_colours_total{colour=\"green\"} 1\n"))
        #expect(text.contains("\napp_level 4\n"))
        #expect(colours[.green] == 1 && colours.total == 1 && plain.value == 42 && level.value == 4)
    }

    @Test func expositionCanBeLimitedToSomeFamilies() {
        registry.counter("app_events_total", "Events.").add(3)
        registry.gauge("app_depth", "How deep it is.") { -7 }
        #expect(
            String(decoding: registry.exposition { $0 == "app_depth" }, as: UTF8.self) == """
                # HELP app_depth How deep it is.
                # TYPE app_depth gauge
                app_depth -7

                """)
    }

    @Test func seriesMayHaveSeveralLabels() {
        let pairs = Colour.allCases.flatMap { left in (0..<2).map { Pair(left: left, right: $0) } }
        let counters = registry.counters("app_pairs_total", "Pairs.", by: ["left", "right"], pairs + pairs) {
            [$0.left.rawValue, "\($0.right)"]
        }
        counters.add(Pair(left: .green, right: 1), 3)
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(
            lines == [
                "app_pairs_total{left=\"red\",right=\"0\"} 0", "app_pairs_total{left=\"red\",right=\"1\"} 0",
                "app_pairs_total{left=\"green\",right=\"0\"} 0", "app_pairs_total{left=\"green\",right=\"1\"} 3",
            ])
    }

    @Test func growingCountersAcceptNewKeys() {
        let counters: GrowingCounters<String> = registry.growingCounters("app_grown_total", "Grown.", by: ["name"]) {
            [$0]
        }
        let lines = { text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init) }
        #expect(lines().isEmpty)
        counters.know(["b"])
        counters.add("b", 2)
        // This key is not known, so it is not counted.
        counters.add("a")
        counters.know(["a", "b"])
        #expect(lines() == ["app_grown_total{name=\"b\"} 2", "app_grown_total{name=\"a\"} 0"])
    }

    @Test func histogramBucketsAreCumulative() {
        let took = registry.histogram(
            "app_seconds", "How long it took.", upTo: [.milliseconds(5), .milliseconds(250), .seconds(10)])
        for milliseconds in [0, 5, 6, 250, 9_999, 10_000, 10_001, 3_600_000] {
            took.observe(.milliseconds(milliseconds))
        }
        #expect(took.count == 8)
        #expect(
            text == """
                # HELP app_seconds How long it took.
                # TYPE app_seconds histogram
                app_seconds_bucket{le="0.005"} 2
                app_seconds_bucket{le="0.25"} 4
                app_seconds_bucket{le="10.0"} 6
                app_seconds_bucket{le="+Inf"} 8
                app_seconds_sum 3630.261
                app_seconds_count 8

                """)
    }

    @Test func unknownGaugeIsOmitted() {
        let known = Mutex<[String: Int64]>(["a": 7])
        let age = Mutex<Duration?>(nil)
        registry.gauges("app_levels", "Levels.", by: "of", ["a", "b"]) { word in known.withLock { $0[word] } }
        registry.duration("app_age_seconds", "Age.") { age.withLock { $0 } }
        #expect(
            text.contains("\napp_levels{of=\"a\"} 7\n") && !text.contains("of=\"b\"") && !text.contains("\napp_age"))
        known.withLock { $0 = ["b": -1] }
        age.withLock { $0 = .milliseconds(1500) }
        #expect(text.contains("\napp_levels{of=\"b\"} -1\n") && !text.contains("of=\"a\""))
        #expect(text.contains("\napp_age_seconds 1.5\n"))
    }

    /// The format requires escapes for backslash, quote and line feed in values and help texts.
    @Test func helpAndLabelsAreEscaped() {
        registry.constant("app_info", "One\\two\n\"three\".", labels: [("said", "a\\b\"c\nd")], 1)
        #expect(
            text == """
                # HELP app_info One\\\\two\\n"three".
                # TYPE app_info gauge
                app_info{said="a\\\\b\\"c\\nd"} 1.0

                """)
    }

    @Test func concurrentIncrementsAreExact() async {
        let counter = registry.counter("app_events_total", "Events.")
        let level = registry.gauge("app_level", "Level.")
        let registry = registry
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for round in 0..<5000 {
                        counter.add()
                        level.add(2)
                        level.subtract()
                        if round % 1000 == 0 { _ = registry.exposition() }
                    }
                }
            }
        }
        #expect(counter.value == 20_000)
        #expect(level.value == 20_000)
    }

    /// The client library of Prometheus reads the exposition.
    @Test func prometheusClientParsesTheExposition() async throws {
        registry.constant("app_info", "One\\two\n\"three\".", labels: [("said", "a\\b\"c\nd")], 1)
        registry.constant("app_started_seconds", "When it began.", 1_800_000_000.125)
        registry.counters("app_colours_total", "Colours seen.", by: "colour", Colour.self).add(.red, 9)
        let took = registry.histogram("app_seconds", "How long it took.", upTo: [.milliseconds(250), .seconds(10)])
        took.observe(.milliseconds(125))
        took.observe(.seconds(20))
        let directory = try TemporaryDirectory()
        try TextFile.write(registry.exposition(), to: directory("metrics.txt"))
        let script = """
            import sys
            from prometheus_client.parser import text_string_to_metric_families
            for family in text_string_to_metric_families(open(sys.argv[1]).read()):
                for sample in family.samples:
                    print(ascii((sample.name, family.type, family.documentation, sample.labels, sample.value)))
            """
        let read = try await Child.run("/usr/bin/python3", ["-c", script, directory("metrics.txt")])
        #expect(
            read.output == #"""
                ('app_info', 'gauge', 'One\\two\n"three".', {'said': 'a\\b"c\nd'}, 1.0)
                ('app_started_seconds', 'gauge', 'When it began.', {}, 1800000000.125)
                ('app_colours_total', 'counter', 'Colours seen.', {'colour': 'red'}, 9.0)
                ('app_colours_total', 'counter', 'Colours seen.', {'colour': 'green'}, 0.0)
                ('app_seconds_bucket', 'histogram', 'How long it took.', {'le': '0.25'}, 1.0)
                ('app_seconds_bucket', 'histogram', 'How long it took.', {'le': '10.0'}, 1.0)
                ('app_seconds_bucket', 'histogram', 'How long it took.', {'le': '+Inf'}, 2.0)
                ('app_seconds_sum', 'histogram', 'How long it took.', {}, 20.125)
                ('app_seconds_count', 'histogram', 'How long it took.', {}, 2.0)

                """#, "\(read.errors)")
    }
}
