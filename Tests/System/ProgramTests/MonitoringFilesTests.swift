import Glibc
import JSON
import TestSupport
import Testing

/// The alert rules and the dashboard in `deploy/monitoring`.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MonitoringFilesTests {
    private static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    private static let files = "\(root)/deploy/monitoring"

    /// The names that the pages for operators document. Other tests compare those with the relay.
    private func documented() throws -> Set<String> {
        var names: Set<String> = []
        for page in ["monitoring", "sms"] {
            let text = try TextFile.read("\(Self.root)/docs/operators/\(page).md")
            for match in text.matches(of: #/`((?:twoefay|process)_[a-z_]+)/#) { names.insert(String(match.1)) }
        }
        return names
    }

    @Test(arguments: ["alerts.yml", "alerts-test.yml", "dashboard.json"])
    func everyMetricIsDocumented(file: String) throws {
        let known = try documented()
        let text = try TextFile.read("\(Self.files)/\(file)")
        let used = Set(text.matches(of: #/\b(?:twoefay|process)_[a-z_]+/#).map { String($0.0) })
        #expect(used.count > 10)
        for name in used.sorted() {
            let family = ["_bucket", "_count", "_sum"].first { name.hasSuffix($0) }.map {
                String(name.dropLast($0.count))
            }
            #expect(known.contains(name) || known.contains(family ?? name), "\(name)")
        }
    }

    @Test func everyAlertIsExplained() throws {
        let page = try TextFile.read("\(Self.root)/docs/operators/monitoring.md")
        let rules = try TextFile.read("\(Self.files)/alerts.yml")
        let names = rules.matches(of: #/- alert: (\w+)/#).map { String($0.1) }
        #expect(names.count > 20 && Set(names).count == names.count)
        let explained = page.matches(of: #/(?m)^\| `(Twoefay\w+)` \|/#).map { String($0.1) }
        #expect(explained == names)
    }

    @Test func dashboardIsValidJSON() throws {
        let text = try TextFile.read("\(Self.files)/dashboard.json")
        let board = try #require(try JSONReader.read(Array(text.utf8)).object)
        let list = try #require(board["panels"]?.array)
        let panels = list.compactMap { $0.object }
        #expect(panels.count > 15)
        #expect(Set(panels.compactMap { $0["id"]?.integer }).count == panels.count)
        for panel in panels {
            #expect(panel["targets"]?.array?.isEmpty == false, "\(String(describing: panel["title"]))")
        }
    }

    /// Prometheus's own tool accepts the rules, and runs their tests.
    @Test(
        .enabled(if: access(promtool, X_OK) == 0, "promtool is not installed; run: dev/need test"),
        arguments: [["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]])
    func promtoolAcceptsTheRules(arguments: [String]) async throws {
        let ended = try await Child.run(Self.promtool, arguments, in: Self.files)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    private static let promtool = "/usr/bin/promtool"
}
