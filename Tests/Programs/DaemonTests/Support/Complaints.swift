import Daemon

/// Returns the problems of a settings file, each with its line and column. The file has the three
/// required settings, followed by `text`.
func complaints(below text: String) -> [String] {
    let least = "origin: https://a.example\nlisten: 0.0.0.0:8080\nstorage: sqlite:t.db\n"
    do throws(SettingsReader.Problems) {
        _ = try SettingsReader.read(Array((least + text).utf8), file: "t.yaml")
        return []
    } catch {
        return error.all.map(\.description)
    }
}
